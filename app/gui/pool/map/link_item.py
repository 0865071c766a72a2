"""A link on the map: its line, and the plate with what was measured."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QGraphicsPathItem, QStyleOptionGraphicsItem, QWidget

from app.gui.look import theme as sizes
from app.gui.look.theme import Theme
from app.gui.pool import machine_words
from app.gui.pool.link_facts import LinkFacts
from app.gui.pool.machine_facts import MachineFacts
from app.gui.pool.map import card_drawing
from app.gui.pool.map.map_layout import Way
from app.gui.pool.map.map_rects import Size
from app.gui.widgets.labels import tooltip

DEVICE = QGraphicsItem.CacheMode.DeviceCoordinateCache
ICON = 14
PADDING, INDENT = sizes.S, sizes.XS


class LinkLine(QGraphicsPathItem):
    """The line; thicker and in the accent while it carries an answer."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setCacheMode(DEVICE)  # else each dot that moves on it strokes the whole curve anew
        self.setZValue(0)

    def follow(self, facts: MachineFacts, way: Way, *, active: bool) -> None:
        """Lie along `way`."""
        path = path_of(way)
        if path != self.path():
            self.setPath(path)
        pen = QPen(self._theme.colour("accent" if active else "border"), 2 if active else 1.5)
        if not facts.online or facts.left_out or facts.state == "left_out":
            pen.setStyle(Qt.PenStyle.DashLine)
        if pen != self.pen():
            self.setPen(pen)


def path_of(way: Way) -> QPainterPath:
    """From the host: a curve that begins and ends level, then straight."""
    path = QPainterPath(QPointF(*way.start))
    half = (way.start[0] + way.bend[0]) / 2
    first, second = QPointF(half, way.start[1]), QPointF(half, way.bend[1])
    if way.bend != way.start:
        path.cubicTo(first, second, QPointF(*way.bend))
    path.lineTo(QPointF(*way.end))
    return path


class Plate(QGraphicsItem):
    """What was measured, in the card's colour so that the line does not run through the words."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: list[machine_words.Shown] = []
        self._size = Size(0, 0)
        self.setCacheMode(DEVICE)
        self.setZValue(1)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def show_link(self, facts: MachineFacts, way: Way, *, compact: bool) -> None:
        """Stand on the link. Without a link there is no plate."""
        self.setVisible(facts.link is not None)
        if facts.link is None:
            return
        rows = rows_of(facts.link, compact=compact)
        size = plate_size(self._theme, [facts.link], compact=compact)
        if size != self._size:
            self.prepareGeometryChange()
            self._size = size
        x, y = way.plate.centre
        self.setPos(x - size.w / 2, y - size.h / 2)
        self._rows = rows
        told = facts.name, machine_words.carried(facts.link), facts.link.trouble
        self.setToolTip(tooltip(*filter(None, told)))
        self.update()

    def boundingRect(self) -> QRectF:  # noqa: N802  Qt's name
        return QRectF(0, 0, self._size.w, self._size.h)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        theme = self._theme
        pen = QPen(theme.colour("hairline"), 1)
        radius = theme.px(sizes.CONTROL_RADIUS)
        card_drawing.surface(painter, self.boundingRect(), radius, theme.colour("card"), pen)
        font, pad, side = theme.font(sizes.CAPTION), theme.px(PADDING), theme.px(ICON)
        line, y = card_drawing.height(font), float(theme.px(INDENT))
        for shown in self._rows:
            where = QRectF(pad, y, self._size.w - 2 * pad, line)
            if shown.icon:
                spot = QRectF(where.x(), where.center().y() - side / 2, side, side)
                card_drawing.picture(painter, spot, shown.icon, theme.colour(shown.colour))
                where = where.adjusted(side + theme.px(sizes.XS), 0, 0, 0)
            card_drawing.text(painter, where, shown.word, font, theme.colour(shown.colour))
            y += line


def rows_of(link: LinkFacts, *, compact: bool) -> list[machine_words.Shown]:
    """Speed; what carries it; what it costs of the time, where that is known."""
    rows = [machine_words.Shown(machine_words.speed(link), "", "text")]
    if link.trouble and link.kind:
        rows.append(machine_words.bad_way(link))
    elif link.kind and not (compact and link.share is not None):
        rows.append(machine_words.kind(link.worst_kind))
    if link.share is not None and not (compact and len(rows) > 1):
        cost = machine_words.share(link.share)
        rows.append(machine_words.Shown(cost.word, "", cost.colour))
    return rows


def plate_size(theme: Theme, links: list[LinkFacts], *, compact: bool) -> Size:
    """Large enough for the largest of these links."""
    font = theme.font(sizes.CAPTION)
    indent = theme.px(ICON) + theme.px(sizes.XS)
    wide, rows = 0.0, 1
    for link in links:
        shown = rows_of(link, compact=compact)
        rows = max(rows, len(shown))
        for one in shown:
            wide = max(wide, card_drawing.width(one.word, font) + (indent if one.icon else 0))
    height = rows * card_drawing.height(font) + 2 * theme.px(INDENT)
    return Size(round(wide + 2 * theme.px(PADDING) + 1), round(height))
