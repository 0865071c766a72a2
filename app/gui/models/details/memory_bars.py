"""A bar for each machine: weights, KV cache and work memory, of what it lends now."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.theme import Theme
from app.gui.models.details.memory_sums import Memory, of_machine
from app.gui.widgets.flow import Flow
from app.gui.widgets.label_with_control import Beside
from app.gui.widgets.labels import Elided, label
from app.gui.widgets.layouts import clear, column, held, row

PARTS = (("weights", "accent"), ("kv", "good"), ("work", "border"))  # and their colours
HEIGHT = SWATCH = sizes.S
NAME = 12  # characters of a name that are shown at least


class Bar(QWidget):
    """The three parts of one machine's memory; the rest is left."""

    def __init__(self, theme: Theme, part: Memory) -> None:
        super().__init__()
        self._theme, self._part = theme, part
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setToolTip(of_machine(part))
        self.setAccessibleName(f"{part.name}: {of_machine(part)}")

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(self._theme.px(sizes.SIDEBAR_WIDTH), self._theme.px(HEIGHT))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        whole = QRectF(self.rect())
        shape = QPainterPath()
        shape.addRoundedRect(whole, whole.height() / 2, whole.height() / 2)
        painter.setClipPath(shape)
        painter.fillRect(whole, self._theme.colour("hairline"))
        scale = whole.width() / max(self._part.lends, self._part.needs, 1)
        left = 0.0
        for name, colour in PARTS:
            width = getattr(self._part, name) * scale
            painter.fillRect(QRectF(left, 0, width, whole.height()), self._theme.colour(colour))
            left += width


class Swatch(QWidget):
    """The colour of a part, in the legend."""

    def __init__(self, theme: Theme, colour: str) -> None:
        super().__init__()
        self._theme, self._colour = theme, colour
        self.setFixedSize(theme.px(SWATCH), theme.px(SWATCH))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour(self._colour))
        painter.drawEllipse(QRectF(self.rect()))


class MemoryBars(QWidget):
    """All machines of a plan, and what the colours mean."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: list[Memory] = []
        self._box: QVBoxLayout = column(gap=sizes.M)
        self.setLayout(self._box)
        theme.changed.connect(self._fill)

    def show_parts(self, parts: list[Memory]) -> None:
        if parts != self._shown:
            self._shown = parts
            self._fill()

    def _fill(self) -> None:
        clear(self._box)
        if not self._shown:
            return
        for part in self._shown:
            words = self.tr("{needs} of {lends}").format(
                needs=formats.size(part.needs), lends=formats.size(part.lends)
            )
            names = held(Beside(Elided(part.name), label(words), gap=sizes.S, least=NAME))
            below = Elided(of_machine(part), "caption")
            self._box.addLayout(column(names, Bar(self._theme, part), below, gap=sizes.XS))
        self._box.addWidget(held(self._legend()))

    def _legend(self) -> Flow:
        words = {"weights": self.tr("Weights"), "kv": self.tr("KV cache"), "work": self.tr("Work")}
        line = Flow(gap=sizes.M)
        for name, colour in PARTS:
            inside = row(Swatch(self._theme, colour), label(words[name], "caption"), gap=sizes.XS)
            line.addWidget(held(inside))
        return line
