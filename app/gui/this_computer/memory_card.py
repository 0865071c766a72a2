"""The card for lending memory, processor threads and bandwidth, with a memory bar, a legend and the limits."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QLayout, QSizePolicy, QWidget

from app.api.snapshot import Lending
from app.core.lending.policy import LINK_LEAST_MBIT, LINK_MOST_MBIT
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.theme import Theme, set_role
from app.gui.this_computer.lending_store import LendingStore
from app.gui.this_computer.rule_controls import DebouncedNumber, DebouncedSlider, RuleRow
from app.gui.widgets.buttons import Switch, button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column, line, row

DENSE = Qt.BrushStyle.BDiagPattern
SOLID = Qt.BrushStyle.SolidPattern


@dataclass(frozen=True, slots=True)
class Part:
    """A segment of the memory bar. `look` is a color name and a fill pattern."""

    name: str
    bytes: int
    look: tuple[str, Qt.BrushStyle]


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The memory of this machine in bytes, divided by use. The amounts add up to the total."""

    programs: int  # used by programs other than Poolhouse
    own: int  # used by this machine's own models
    used: int  # lent and in use
    unused: int  # lent but not in use by anyone
    reserve: int  # never lent
    free: int


def memory_use(lending: Lending) -> MemoryUse:
    """Divide the memory by use.

    In `lending`, memory reserved for layers that are not loaded yet counts as free. Here it counts as used.
    """
    total, free, used = lending.total_bytes, lending.free_bytes, lending.used_bytes
    taken = max(0, total - free)
    own = min(lending.own_bytes, taken)
    unloaded = max(0, used - (taken - own))
    left = max(0, free - unloaded)
    unused = min(left, max(0, lending.lent_bytes - used))
    reserve = min(left - unused, lending.reserve_bytes)
    programs = max(0, total - own - used - left)
    return MemoryUse(programs, own, used, unused, reserve, left - unused - reserve)


class MemoryBar(QWidget):
    """A bar that shows the memory of this machine by use. The legend below explains its segments."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._parts: tuple[Part, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_parts(self, parts: tuple[Part, ...]) -> None:
        """Show these segments from left to right."""
        if parts != self._parts:
            self._parts = parts
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(sizes.CHAT_WIDTH // 2, self._theme.px(sizes.L))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(self.rect())
        path = QPainterPath()
        path.addRoundedRect(whole, sizes.XS, sizes.XS)
        painter.setClipPath(path)
        painter.fillRect(whole, self._theme.color("hairline"))
        total = sum(part.bytes for part in self._parts) or 1
        left = 0.0
        for part in self._parts:
            wide = whole.width() * part.bytes / total
            paint_pattern(painter, QRectF(left, 0, wide, whole.height()), self._theme, part.look)
            left += wide


def paint_pattern(painter: QPainter, box: QRectF, theme: Theme, look: tuple[str, Qt.BrushStyle]) -> None:
    """Fill a segment with its color and pattern, which makes segments distinguishable without color."""
    color: QColor = theme.color(look[0])
    if look[1] is not SOLID:
        painter.fillRect(box, theme.color("card"))
    painter.fillRect(box, QBrush(color, look[1]))
    painter.fillRect(QRectF(box.right() - 1, box.top(), 1, box.height()), theme.color("card"))


class Swatch(QWidget):
    """A legend sample of a segment's color and pattern."""

    def __init__(self, theme: Theme, look: tuple[str, Qt.BrushStyle]) -> None:
        super().__init__()
        self._theme, self._look = theme, look
        self._fit()
        theme.changed.connect(self._fit)

    def _fit(self) -> None:
        self.setFixedSize(self._theme.px(sizes.M), self._theme.px(sizes.M))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        paint_pattern(painter, QRectF(self.rect()), self._theme, self._look)
        painter.setPen(self._theme.color("border"))
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))


STEP, MOST_STEPS = 128 << 20, 256  # step of the slider in bytes, doubled until there are at most this many steps
LOOKS = (
    ("border", SOLID),
    ("good", SOLID),
    ("accent", SOLID),
    ("accent", DENSE),
    ("warning", DENSE),
    ("hairline", SOLID),
)
LEGEND_COLUMNS = 3
NO_LIMIT = LINK_LEAST_MBIT - 1


class MemoryCard(QFrame):
    """The card for the limits. It shows the values from the node, except in a control that the user is changing."""

    def __init__(self, services: AppContext, lending: LendingStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._lending = lending
        self.bar = MemoryBar(services.theme)
        self._entries: list[QWidget] = []
        self._figures: list[QLabel] = []
        self._total = label("", "muted")
        self.limit = DebouncedSlider(self.tr("Maximum memory to lend"), self._moved, self._chosen)
        self._limit_words = label("")
        self._limit_words.setMinimumWidth(sizes.CHAT_WIDTH // 4)
        self.automatic = Switch(services.theme, self.tr("Choose the limit for me"), self._automatic)
        self._auto_row = RuleRow(self.tr("Choose the limit for me"), self.automatic)
        head = row(label(self.tr("Memory"), "section"), None, self._total)
        self._slider = row(self._limit_words, gap=sizes.L)
        self._slider.addWidget(self.limit, 1)
        self._own = paragraph("", "caption")
        end_limit = self.tr("Remove this limit")
        self.end_limit = button(end_limit, self._end_limit, "inline")
        title = self.tr("Maximum processor threads for others")
        self.threads = DebouncedNumber(title, "", (0, 1), self._threads_chosen)
        self.threads.setSpecialValueText(self.tr("All"))
        self._threads_row = RuleRow(title, self.threads)
        self._threads_row.say(self.tr("Takes effect the next time layers are loaded."))
        parts: list[QWidget | QLayout] = [
            head,
            self.bar,
            self._legend(services),
            self._slider,
            self._auto_row,
            self._own,
        ]
        parts += [row(self.end_limit, None), line(), self._threads_row, line(), self._link_row()]
        box = column(*parts, gap=sizes.L)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        lending.changed.connect(self.show_state)
        self.show_state()

    def _link_row(self) -> RuleRow:
        title = self.tr("Maximum network use by Poolhouse")
        self.link = DebouncedNumber(title, self.tr("Mbit/s"), (NO_LIMIT, LINK_MOST_MBIT), self._link_chosen)
        self.link.setSpecialValueText(self.tr("No limit"))
        row = RuleRow(title, self.link)
        row.say(
            self.tr(
                "The limit applies in each direction to layers, answers and downloads. Forecasts take it into account."
            )
        )
        return row

    def _names(self) -> tuple[str, ...]:
        return (
            self.tr("Other programs"),
            self.tr("Your own model"),
            self.tr("Used by others"),
            self.tr("Lent, unused"),
            self.tr("Reserved for you"),
            self.tr("Free"),
        )

    def _legend(self, services: AppContext) -> Flow:
        """Return the legend. `_align` later makes all of its entries equally wide."""
        for name, look in zip(self._names(), LOOKS, strict=True):
            entry, figure = QWidget(), label("")
            entry.setLayout(row(Swatch(services.theme, look), label(name, "muted"), figure, None))
            self._entries.append(entry)
            self._figures.append(figure)
        return Flow(*self._entries, gap=sizes.S)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._align()

    def _align(self) -> None:
        inside = self.contentsRect().width() - 2 * sizes.L
        wide = max(entry.minimumSizeHint().width() for entry in self._entries)
        columns = max(1, min(LEGEND_COLUMNS, (inside + sizes.S) // (wide + sizes.S)))
        each = (inside - (columns - 1) * sizes.S) // columns
        for entry in self._entries:  # a single column needs no minimum width, which would only widen the page
            entry.setMinimumWidth(each if columns > 1 else 0)

    def show_state(self) -> None:
        """Show the current state and limits."""
        state = self._lending.state
        if not state:
            return
        self._show_bar(state)
        total = state.total_bytes
        self._total.setText(self.tr("{size} total").format(size=formats.size(total)))
        known = self._lending.is_known
        self.threads.setEnabled(known)
        self.threads.setMaximum(max(1, self._lending.most_threads))
        self.threads.show_value(self._lending.rules.threads)
        self.link.setEnabled(known)
        self.link.show_value(self._lending.rules.link_mbit or NO_LIMIT)
        chosen = self._lending.rules.memory_bytes
        self.limit.setEnabled(known)  # moving it ends the automatic choice
        self.automatic.setEnabled(known)
        self.automatic.show_on(known and chosen is None)
        self._auto_row.say(self.tr("Half of the memory that is free when Poolhouse starts."))
        own = self.tr("This limits how much memory others can use. Models that you load here can use up to {size}.")
        limited = self.tr(
            "All models on this machine, including those of other machines, can use up to "
            "{limit} in total. Your own models can use up to {size} of that."
        )
        limit = self._lending.rules.limit_bytes
        size = formats.size(self._lending.own_most_bytes)
        self._own.setText((limited if limit else own).format(size=size, limit=formats.size(limit)))
        self._own.setVisible(bool(self._lending.own_most_bytes))
        self.end_limit.setVisible(bool(limit))
        most = max(1, (total - state.reserve_bytes) // self._step())
        self.limit.show_value(round(self._lending.most_bytes / self._step()), most)

    def _show_bar(self, lending: Lending) -> None:
        memory = memory_use(lending)
        amounts = (memory.programs, memory.own, memory.used, memory.unused, memory.reserve, memory.free)
        names = self._names()
        order = (0, 1, 2, 3, 5, 4)  # puts the reserve at the end
        self.bar.show_parts(tuple(Part(names[index], amounts[index], LOOKS[index]) for index in order))
        description = []
        for name, figure, amount in zip(names, self._figures, amounts, strict=True):
            figure.setText(formats.size(amount) if amount else self.tr("none"))
            description.append(f"{name}: {figure.text()}")
        self.bar.setAccessibleName(self.tr("Memory of this machine"))
        self.bar.setAccessibleDescription(", ".join(description))

    def _step(self) -> int:
        total = self._lending.state.total_bytes if self._lending.state else 0
        step = STEP
        while total // step > MOST_STEPS:
            step *= 2
        return step

    def _moved(self, steps: int) -> None:
        exact = round(self._lending.most_bytes / self._step()) == steps
        amount = self._lending.most_bytes if exact else steps * self._step()
        self._limit_words.setText(self.tr("Lend at most {size}").format(size=formats.size(amount)))

    def _chosen(self, steps: int) -> None:
        on = self._lending.is_on
        self._lending.change({"memory_bytes": steps * self._step(), "on": on})

    def _end_limit(self) -> None:
        """Remove the limit for all models on this computer.

        That limit is set on the command line, for scripts and for running several nodes.
        """
        self._lending.change({"limit_bytes": 0})

    def _threads_chosen(self, threads: int) -> None:
        self._lending.change({"threads": threads})

    def _link_chosen(self, mbit: int) -> None:
        self._lending.change({"link_mbit": 0 if mbit == NO_LIMIT else mbit})

    def _automatic(self, automatic: bool) -> None:
        steps = max(1, round(self._lending.most_bytes / self._step()))
        chosen = None if automatic else steps * self._step()
        self._lending.change({"memory_bytes": chosen, "on": self._lending.is_on})
