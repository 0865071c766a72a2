"""A link between two lenders on the map: a thin line, with its figures where they have room, and all in its tooltip."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QPainter, QPainterPath, QPainterPathStroker, QPen
from PySide6.QtWidgets import QGraphicsItem, QGraphicsPathItem, QStyleOptionGraphicsItem, QWidget

from app.gui.look import theme as sizes
from app.gui.look.theme import Theme
from app.gui.pool import machine_words
from app.gui.pool.link_facts import Between
from app.gui.pool.map import card_drawing
from app.gui.pool.map.lender_link_routes import Line
from app.gui.widgets.labels import tooltip

THIN, CHOSEN = 1.0, 1.5  # the host's own links are thicker
REACH = sizes.S  # of the mouse, across the line
CORNER = sizes.S


class BetweenLine(QGraphicsPathItem):
    """In the accent while one of its machines is chosen."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setZValue(-1)
        self._figures = Figures(theme, self)

    def follow(self, between: Between, line: Line, room: float, *, chosen: bool) -> None:
        """Lie along `line`. room: how wide its figures may be."""
        path = rounded(line, self._theme.px(CORNER))
        if path != self.path():
            self.setPath(path)
        pen = QPen(self._theme.colour("accent" if chosen else "border"), CHOSEN if chosen else THIN)
        if pen != self.pen():
            self.setPen(pen)
        self.setToolTip(tooltip(*machine_words.all_between(between)))
        self._figures.show_on(machine_words.speed(between.link), line, room, self.toolTip())

    def shape(self) -> QPainterPath:
        """Wide enough to be pointed at."""
        stroker = QPainterPathStroker()
        stroker.setWidth(self._theme.px(REACH))
        return stroker.createStroke(self.path())


class Figures(QGraphicsItem):
    """Speed and round trip on a line between neighbours, where the gap between their cards is high enough."""

    def __init__(self, theme: Theme, line: BetweenLine) -> None:
        super().__init__(line)
        self._theme, self._text, self._where = theme, "", QRectF()

    def show_on(self, text: str, line: Line, room: float, tip: str) -> None:
        """Hidden on any other line, and where it would be as high as the gap."""
        font = self._theme.font(sizes.CAPTION)
        wide = card_drawing.width(text, font) + 2 * self._theme.px(sizes.S)
        high = card_drawing.height(font) + self._theme.px(sizes.XS)
        (x, top), (_, bottom) = line[0], line[-1]
        fits = high + 2 * self._theme.px(sizes.XS) <= bottom - top and wide <= room
        self.setVisible(len(line) == 2 and fits)
        where = QRectF(x - wide / 2, (top + bottom - high) / 2, wide, high)
        if (text, where) != (self._text, self._where):
            self.prepareGeometryChange()
            self._text, self._where = text, where
            self.update()
        self.setToolTip(tip)

    def boundingRect(self) -> QRectF:  # noqa: N802  Qt's name
        return self._where

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        theme = self._theme
        pen, radius = QPen(theme.colour("hairline"), 1), theme.px(sizes.CONTROL_RADIUS)
        card_drawing.surface(painter, self._where, radius, theme.colour("card"), pen)
        font = theme.font(sizes.CAPTION)
        card_drawing.text(painter, self._where, self._text, font, theme.colour("muted"), card_drawing.CENTRE)


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
