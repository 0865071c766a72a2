"""The card for lending hours, which are either all hours or those painted in a weekly grid."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QDateTime, QLocale, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from app.core.errors import AppError
from app.core.lending.hours import (
    DAY_MINUTES,
    DAYS,
    MAX_CHARACTERS,
    MAX_SPANS,
    Span,
    format_hours,
    is_within,
    parse_hours,
)
from app.gui.app.app_context import AppContext
from app.gui.app.preferences import Preferences
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import said
from app.gui.look.theme import Theme, set_role
from app.gui.this_computer.lending_store import LendingStore
from app.gui.this_computer.rule_controls import RuleRow
from app.gui.widgets.buttons import Switch, button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column

HOUR_MINUTES = 60
HOURS = DAY_MINUTES // HOUR_MINUTES
WEEK = len(DAYS) * HOURS
Cell = tuple[int, int]  # (weekday, hour); 0 is Monday
Cells = frozenset[Cell]

ALL: Cells = frozenset((day, hour) for day in range(len(DAYS)) for hour in range(HOURS))


def cells_of(spans: Iterable[Span]) -> Cells:
    """Return the hours that lie entirely within the spans. If there are no spans, return all hours."""
    all_spans = tuple(spans)
    return frozenset((day, hour) for day, hour in ALL if _whole(all_spans, day, hour))


def is_exact(spans: Iterable[Span]) -> bool:
    """Return whether the grid represents the spans exactly, because they start and end on the hour."""
    all_spans = tuple(spans)
    cells = cells_of(all_spans)
    return all(
        is_within(all_spans, day, minute) == ((day, minute // HOUR_MINUTES) in cells)
        for day in range(len(DAYS))
        for minute in range(DAY_MINUTES)
    )


def text_of(cells: Cells) -> str:
    """Return the cells as a rule in text form. Raises ValueError if there are none: no rule can express that."""
    if not cells:
        raise ValueError("no hour at all")
    return format_hours(spans_of(cells))


def spans_of(cells: Cells) -> tuple[Span, ...]:
    """Return the fewest spans that cover these cells, such as one span for a night, or no spans for all cells."""
    if cells == ALL:
        return ()
    days: dict[tuple[int, int], list[int]] = {}
    for start, length in _runs(cells):
        for day, first, last in _pieces(start, length):
            days.setdefault((first, last), []).append(day)
    spans = [Span(tuple(sorted(on)), first * HOUR_MINUTES, last * HOUR_MINUTES) for (first, last), on in days.items()]
    return tuple(sorted(spans, key=lambda span: (span.days, span.from_minute)))


def _whole(spans: tuple[Span, ...], day: int, hour: int) -> bool:
    start = hour * HOUR_MINUTES
    return all(is_within(spans, day, minute) for minute in range(start, start + HOUR_MINUTES))


def _runs(cells: Cells) -> list[tuple[int, int]]:
    """Return the first hour of the week and the length of each contiguous run. A run may wrap around the week's end."""
    hours = {day * HOURS + hour for day, hour in cells}
    runs = []
    for start in sorted(hours):
        if (start - 1) % WEEK not in hours:
            length = 1
            while (start + length) % WEEK in hours:
                length += 1
            runs.append((start, length))
    return runs


def _pieces(start: int, length: int) -> list[tuple[int, int, int]]:
    """Return a run as (day, from hour, to hour): one piece per day, or a single one if it is at most 24 hours long."""
    day, hour = divmod(start, HOURS)
    if hour and length <= HOURS:
        last = (hour + length) % HOURS or HOURS
        return [(day, hour, last)]
    pieces = []
    while length:
        day, hour = divmod(start % WEEK, HOURS)
        taken = min(length, HOURS - hour)
        pieces.append((day, hour, hour + taken))
        start, length = start + taken, length - taken
    return pieces


DAYS_A_WEEK = 7
LABEL_STEPS = (3, 6, 12)  # hours between two labels, depending on the width
FOCUS_LINE = 2
STEPS = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}


class WeekGrid(QWidget):
    """A weekly grid of hours. The user paints hours with the mouse, or with Space and Shift+arrow keys."""

    painted = Signal(object)  # Cells, after a change by the user

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._cells: Cells = ALL
        self._at: Cell = (0, 0)
        self._from: Cell | None = None  # the cell in which painting with the mouse started
        self._under: Cells = ALL  # the cells before painting started
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Hours of the week"))
        self.setAccessibleDescription(
            self.tr(
                "Use the arrow keys to move, Space to turn an hour on or off, and Shift+arrow to change several hours."
            )
        )
        theme.changed.connect(self.updateGeometry)

    @property
    def cells(self) -> Cells:
        return self._cells

    def show_cells(self, cells: Cells) -> None:
        """Show these cells, unless the user is painting with the mouse."""
        if self._from is None and cells != self._cells:
            self._cells = cells
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        px = self._theme.px
        row = px(sizes.XL)
        return QSize(sizes.CHAT_WIDTH // 2, px(sizes.XL) + DAYS_A_WEEK * row)

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(sizes.CHAT_WIDTH // 2, self.sizeHint().height())

    # Mouse and keys

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802  Qt's name
        cell = self._cell(event.position())
        if event.button() is Qt.MouseButton.LeftButton and cell is not None:
            self._from, self._under, self._at = cell, self._cells, cell
            self._paint_to(cell)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802  Qt's name
        if self._from is not None:
            self._at = self._nearest(event.position())
            self._paint_to(self._at)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802  Qt's name
        if self._from is not None:
            self._from = None
            self._tell()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        key = Qt.Key(event.key())
        if key in STEPS:
            was_on = self._at in self._cells
            day, hour = (at + step for at, step in zip(self._at, STEPS[key], strict=True))
            self._at = (day % DAYS_A_WEEK, hour % HOURS)
            if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self._set(self._at, was_on)
        elif key in (Qt.Key.Key_Space, Qt.Key.Key_Return):
            self._set(self._at, self._at not in self._cells)
        else:
            super().keyPressEvent(event)
            return
        self.update()
        announce(self, self._description(self._at))

    def _set(self, cell: Cell, on: bool) -> None:
        before = self._cells
        self._cells = before | {cell} if on else before - {cell}
        if self._cells != before:
            self._tell()

    def _paint_to(self, cell: Cell) -> None:
        """Fill the rectangle from the first painted cell to this one, or clear it if the first cell was filled."""
        assert self._from is not None
        days = sorted((self._from[0], cell[0]))
        hours = sorted((self._from[1], cell[1]))
        inside = frozenset((day, hour) for day in range(days[0], days[1] + 1) for hour in range(hours[0], hours[1] + 1))
        erases = self._from in self._under
        self._cells = self._under - inside if erases else self._under | inside
        self.update()

    def _tell(self) -> None:
        self.update()
        self.painted.emit(self._cells)

    def _description(self, cell: Cell) -> str:
        on = self.tr("lends") if cell in self._cells else self.tr("does not lend")
        day = QLocale().standaloneDayName(cell[0] + 1)
        return self.tr("{day} {hour}:00, {state}").format(day=day, hour=cell[1], state=on)

    # Geometry and painting

    def _origin(self) -> tuple[float, float, float, float]:
        """Return the left and top edges of the first cell, and the width and height of a cell."""
        left, top = self._theme.px(sizes.XXL + sizes.L), self._theme.px(sizes.XL)
        return left, top, (self.width() - left) / HOURS, self._theme.px(sizes.XL)

    def rect_of(self, cell: Cell) -> QRectF:
        left, top, wide, high = self._origin()
        return QRectF(left + cell[1] * wide, top + cell[0] * high, wide, high)

    def _nearest(self, where: QPointF) -> Cell:
        left, top, wide, high = self._origin()
        day, hour = (where.y() - top) // high, (where.x() - left) // wide
        return int(min(max(day, 0), DAYS_A_WEEK - 1)), int(min(max(hour, 0), HOURS - 1))

    def _cell(self, where: QPointF) -> Cell | None:
        cell = self._nearest(where)
        return cell if self.rect_of(cell).contains(where) else None

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font(sizes.CAPTION))
        self._paint_labels(painter)
        theme = self._theme
        for cell in sorted(ALL):
            on = cell in self._cells
            box = self.rect_of(cell).adjusted(1, 1, -1, -1)
            painter.setPen(QPen(theme.color("accent" if on else "hairline"), 1))
            # filled or empty, so that the state does not depend on color alone
            painter.setBrush(theme.color("accent" if on else "card"))
            painter.drawRoundedRect(box, sizes.XS, sizes.XS)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color("text"), FOCUS_LINE))
            painter.drawRoundedRect(self.rect_of(self._at), sizes.XS, sizes.XS)

    def _paint_labels(self, painter: QPainter) -> None:
        painter.setPen(self._theme.color("muted"))
        left, top, wide, high = self._origin()
        for day in range(DAYS_A_WEEK):
            name = QLocale().standaloneDayName(day + 1, QLocale.FormatType.ShortFormat)
            box = QRectF(0, top + day * high, left - sizes.S, high)
            painter.drawText(box, int(Qt.AlignmentFlag.AlignVCenter), name)
        room = painter.fontMetrics().horizontalAdvance("00:00") + sizes.XS
        every = next((step for step in LABEL_STEPS if step * wide >= room), HOURS)
        for hour in range(0, HOURS, every):
            box = QRectF(left + hour * wide, 0, every * wide, top - sizes.XS)
            painter.drawText(box, int(Qt.AlignmentFlag.AlignBottom), f"{hour:02}:00")


ALWAYS = "always"
NIGHTS, NIGHTS_AND_WEEKENDS = "mon-sun 22:00-07:00", "mon-fri 18:00-08:00, sat, sun"
KEPT = "lending/hours"  # preference with the painted hours, kept while the rule is off


class HoursCard(QFrame):
    """The card for lending hours, with a switch, the weekly grid, and the same hours as text."""

    def __init__(self, services: AppContext, lending: LendingStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._lending = lending
        self._preferences: Preferences = services.preferences
        title = self.tr("Only at certain hours")
        self.switch = Switch(services.theme, title, self._switched)
        self._row = RuleRow(title, self.switch)
        set_role(self._row.title, "section")
        self.grid = WeekGrid(services.theme)
        self.grid.painted.connect(self._painted)
        self.text = QLineEdit()
        self.text.setAccessibleName(self.tr("Hours as text"))
        self.text.setMaxLength(MAX_CHARACTERS)
        self.text.editingFinished.connect(self._typed)
        self._problem = paragraph("", "error")
        self._problem.hide()
        self._week = QWidget()
        self._week.setLayout(self._laid_out())
        box = column(self._row, self._week, gap=sizes.L)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        lending.changed.connect(self.show_state)
        self.show_state()

    def _laid_out(self) -> QVBoxLayout:
        self.text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        presets = Flow(
            label(self.tr("As text"), "muted"),
            self.text,
            button(self.tr("Nights"), lambda: self._choose(NIGHTS)),
            button(self.tr("Nights and weekends"), lambda: self._choose(NIGHTS_AND_WEEKENDS)),
        )
        return column(self.grid, presets, self._problem, gap=sizes.M)

    def show_state(self) -> None:
        """Show the hours of the current rules."""
        if not self._lending.is_known:
            self.switch.setEnabled(False)
            self._week.hide()
            return
        text = self._lending.rules.hours
        spans = parse_hours(text)
        limited = bool(spans)
        self.switch.setEnabled(True)
        self.switch.show_on(limited)
        self._week.setVisible(limited)
        if not self._lending.is_changing:  # otherwise, an outdated answer would undo hours painted since
            self.grid.show_cells(cells_of(spans))
        if not self.text.hasFocus():
            self.text.setText(text)
        self._row.say(self._reading(limited, text))

    def _reading(self, limited: bool, text: str) -> str:
        if not limited:
            return self.tr("Lends at any hour.")
        now = QDateTime.currentDateTime()
        minute = now.time().hour() * 60 + now.time().minute()
        inside = is_within(parse_hours(text), now.date().dayOfWeek() - 1, minute)
        words = self.tr("Lending is allowed now.") if inside else self.tr("Lending is not allowed now.")
        if not is_exact(parse_hours(text)):
            words += " " + self.tr("The table shows only whole hours. The text is exact.")
        return words

    def _switched(self, on: bool) -> None:
        self._choose(self._preferences.text(KEPT, NIGHTS_AND_WEEKENDS) if on else ALWAYS)

    def _painted(self, cells: Cells) -> None:
        spans = spans_of(cells)
        if not cells:
            self._refuse(self.tr("Select at least one hour, or turn lending off above."))
        elif len(spans) > MAX_SPANS or len(format_hours(spans)) > MAX_CHARACTERS:
            self._refuse(self.tr("There are too many short time ranges. Use longer ones."))
        else:
            self._choose(text_of(cells))

    def _typed(self) -> None:
        if not self.text.isModified():
            return
        self.text.setModified(False)
        try:
            self._choose(format_hours(parse_hours(self.text.text())))
        except AppError as error:
            self._problem.setText(said(error))
            self._problem.show()

    def _refuse(self, sentence: str) -> None:
        """Explain why these hours are not possible, and show the current ones again."""
        self.show_state()
        self._problem.setText(sentence)
        self._problem.show()

    def _choose(self, text: str) -> None:
        self._problem.hide()
        if text != ALWAYS:
            self._preferences.keep(KEPT, text)
        self._lending.change({"hours": text})
