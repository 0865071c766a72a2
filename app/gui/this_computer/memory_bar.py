"""The memory of this machine as one bar: who has what, what may be lent, what stays free."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.gui.api.node_client import Json
from app.gui.look import theme as sizes
from app.gui.look.theme import Theme

DENSE = Qt.BrushStyle.BDiagPattern
SOLID = Qt.BrushStyle.SolidPattern


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the bar; `look` is a colour's name and a pattern."""

    name: str
    bytes: int
    look: tuple[str, Qt.BrushStyle]


@dataclass(frozen=True, slots=True)
class Shares:
    """Memory by who has it, in bytes; together the whole."""

    others: int  # programs that are not ours
    own: int  # this machine's own model
    used: int  # lent and used
    open: int  # lent and not used yet
    reserve: int  # never lent
    free: int


def shares(lending: Json) -> Shares:
    """From `node.lending`. What was promised and is not loaded yet still counts as free there."""
    total, free = int(lending.get("total_bytes") or 0), int(lending.get("free_bytes") or 0)
    own, used = int(lending.get("own_bytes") or 0), int(lending.get("used_bytes") or 0)
    taken = max(0, total - free)
    own = min(own, taken)
    unloaded = max(0, used - (taken - own))
    left = max(0, free - unloaded)
    opened = min(left, max(0, int(lending.get("lent_bytes") or 0) - used))
    reserve = min(left - opened, int(lending.get("reserve_bytes") or 0))
    others = max(0, total - own - used - left)
    return Shares(others, own, used, opened, reserve, left - opened - reserve)


class MemoryBar(QWidget):
    """Only drawn; the legend beside it holds the words."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._parts: tuple[Part, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_parts(self, parts: tuple[Part, ...]) -> None:
        """From left to right."""
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
        painter.fillRect(whole, self._theme.colour("hairline"))
        total = sum(part.bytes for part in self._parts) or 1
        left = 0.0
        for part in self._parts:
            wide = whole.width() * part.bytes / total
            paint_look(painter, QRectF(left, 0, wide, whole.height()), self._theme, part.look)
            left += wide


def paint_look(
    painter: QPainter, box: QRectF, theme: Theme, look: tuple[str, Qt.BrushStyle]
) -> None:
    """A piece in its colour; patterns tell pieces apart for whoever sees no colours."""
    colour: QColor = theme.colour(look[0])
    if look[1] is not SOLID:
        painter.fillRect(box, theme.colour("card"))
    painter.fillRect(box, QBrush(colour, look[1]))
    painter.fillRect(QRectF(box.right() - 1, box.top(), 1, box.height()), theme.colour("card"))


class Swatch(QWidget):
    """The look of one part, for the legend."""

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
        paint_look(painter, QRectF(self.rect()), self._theme, self._look)
        painter.setPen(self._theme.colour("border"))
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
