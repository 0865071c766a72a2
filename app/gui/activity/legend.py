"""What the marks of a painted figure mean: the mark itself, and a word beside it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.gui.look import theme as sizes
from app.gui.look.theme import Theme
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import row

SOLID, HATCHED, DOT, SQUARE = "solid", "hatched", "dot", "square"


class Mark(QWidget):
    """One mark, painted as it is in the figure."""

    def __init__(self, theme: Theme, token: str, shape: str) -> None:
        super().__init__()
        self._theme, self._token, self._shape = theme, token, shape
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        side = self._theme.px(sizes.M)
        return QSize(side, side)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = self._theme.colour(self._token)
        mark = QRectF(self.rect()).adjusted(2, 2, -2, -2)
        hollow, hatched = self._shape == SQUARE, self._shape == HATCHED
        painter.setPen(QPen(colour, 2) if hollow else Qt.PenStyle.NoPen)
        pattern = Qt.BrushStyle.BDiagPattern if hatched else Qt.BrushStyle.SolidPattern
        painter.setBrush(Qt.BrushStyle.NoBrush if hollow else QBrush(colour, pattern))
        if self._shape == DOT:
            painter.drawEllipse(mark)
        else:
            painter.drawRect(mark)
        painter.end()


class Legend(QWidget):
    """Marks side by side: (colour token, shape, words)."""

    def __init__(self, theme: Theme, *keys: tuple[str, str, str]) -> None:
        super().__init__()
        box = Flow(gap=sizes.M)
        for token, shape, words in keys:
            key = QWidget()
            key.setLayout(row(Mark(theme, token, shape), label(words, "caption"), gap=sizes.XS))
            box.addWidget(key)
        self.setLayout(box)
