"""A link between two lenders on the map: a thin line without a plate; what was measured is in its tooltip."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import QLineF, QPointF
from PySide6.QtGui import QPainterPath, QPainterPathStroker, QPen
from PySide6.QtWidgets import QGraphicsPathItem

from app.gui import theme as sizes
from app.gui.household import drawn, words
from app.gui.household.links import Between
from app.gui.household.map_between import Line
from app.gui.theme import Theme

THIN, CHOSEN = 1.0, 1.5  # the host's own links are thicker
REACH = sizes.S  # of the mouse, across the line
CORNER = sizes.S


class BetweenLine(QGraphicsPathItem):
    """In the accent while one of its machines is chosen."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setZValue(-1)

    def follow(self, between: Between, line: Line, *, chosen: bool) -> None:
        """Lie along `line`."""
        path = rounded(line, self._theme.px(CORNER))
        if path != self.path():
            self.setPath(path)
        pen = QPen(self._theme.colour("accent" if chosen else "border"), CHOSEN if chosen else THIN)
        if pen != self.pen():
            self.setPen(pen)
        self.setToolTip(drawn.tip(*words.all_between(between)))

    def shape(self) -> QPainterPath:
        """Wide enough to be pointed at."""
        stroker = QPainterPathStroker()
        stroker.setWidth(self._theme.px(REACH))
        return stroker.createStroke(self.path())


def rounded(line: Line, radius: float) -> QPainterPath:
    """The line with its corners cut to arcs, smaller ones where a piece is short."""
    points = [QPointF(*point) for point in line]
    path = QPainterPath(points[0])
    for (before, corner), (_, after) in pairwise(pairwise(points)):
        reach = min(radius, *(QLineF(corner, end).length() / 2 for end in (before, after)))
        path.lineTo(_towards(corner, before, reach))
        path.quadTo(corner, _towards(corner, after, reach))
    path.lineTo(points[-1])
    return path


def _towards(start: QPointF, end: QPointF, far: float) -> QPointF:
    way = QLineF(start, end)
    way.setLength(far)
    return way.p2()
