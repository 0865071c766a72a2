"""The hours of a week to paint: seven rows of 24 cells, by mouse or by keys."""

from __future__ import annotations

from PySide6.QtCore import QLocale, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.gui.look import theme as sizes
from app.gui.look.accessibility import announce
from app.gui.look.theme import Theme
from app.gui.this_computer.week import ALL, HOURS, Cell, Cells

DAYS_A_WEEK = 7
LABEL_STEPS = (3, 6, 12)  # hours between labels, as there is room
FOCUS_LINE = 2
STEPS = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}


class WeekGrid(QWidget):
    """`painted(cells)` once a person has changed something. With Shift, arrow keys paint on."""

    painted = Signal(object)  # Cells

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._cells: Cells = ALL
        self._at: Cell = (0, 0)
        self._from: Cell | None = None  # where the mouse began to paint
        self._under: Cells = ALL  # what was there then
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Hours of the week"))
        self.setAccessibleDescription(
            self.tr("Arrow keys move, Space turns an hour on or off, Shift and an arrow paints on.")
        )
        theme.changed.connect(self.updateGeometry)

    @property
    def cells(self) -> Cells:
        return self._cells

    def show_cells(self, cells: Cells) -> None:
        """As they are in force; not while somebody paints."""
        if self._from is None and cells != self._cells:
            self._cells = cells
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        px = self._theme.px
        row = px(sizes.XL)
        return QSize(sizes.CHAT_WIDTH // 2, px(sizes.XL) + DAYS_A_WEEK * row)

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(sizes.CHAT_WIDTH // 2, self.sizeHint().height())

    # mouse and keys

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
        announce(self, self._said(self._at))

    def _set(self, cell: Cell, on: bool) -> None:
        before = self._cells
        self._cells = before | {cell} if on else before - {cell}
        if self._cells != before:
            self._tell()

    def _paint_to(self, cell: Cell) -> None:
        """All between the first cell and this one becomes what the first one was not."""
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

    def _said(self, cell: Cell) -> str:
        on = self.tr("lends") if cell in self._cells else self.tr("does not lend")
        day = QLocale().standaloneDayName(cell[0] + 1)
        return self.tr("{day} {hour}:00, {state}").format(day=day, hour=cell[1], state=on)

    # where things are

    def _origin(self) -> tuple[float, float, float, float]:
        """Left and top of the first cell, width and height of each."""
        left, top = self._theme.px(sizes.XXL + sizes.L), self._theme.px(sizes.XL)
        return left, top, (self.width() - left) / HOURS, self._theme.px(sizes.XL)

    def rect_of(self, cell: Cell) -> QRectF:
        """Where a cell is drawn."""
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
            painter.setPen(QPen(theme.colour("accent" if on else "hairline"), 1))
            painter.setBrush(theme.colour("accent" if on else "card"))  # full or empty, not only a colour
            painter.drawRoundedRect(box, sizes.XS, sizes.XS)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.colour("text"), FOCUS_LINE))
            painter.drawRoundedRect(self.rect_of(self._at), sizes.XS, sizes.XS)

    def _paint_labels(self, painter: QPainter) -> None:
        painter.setPen(self._theme.colour("muted"))
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
