"""The links on the map, drawn as lines from the host with measurements, lines between lenders, and moving dots."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from PySide6.QtCore import QEvent, QLineF, QObject, QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import QPainter, QPainterPath, QPainterPathStroker, QPen
from PySide6.QtWidgets import (
    QGraphicsEllipseItem,
    QGraphicsItem,
    QGraphicsPathItem,
    QGraphicsView,
    QStyleOptionGraphicsItem,
    QWidget,
)

from app.gui.look import drawing, sizes
from app.gui.look.theme import Theme
from app.gui.pool import machine_words
from app.gui.pool.machine_facts import LenderLink, LinkFacts, MachineFacts
from app.gui.pool.map.map_layout import Line, LinkRoute, Size
from app.gui.widgets.labels import tooltip

FRAME_MS = 33
ROUND_FRAMES = 72  # frames for a dot to travel there and back
STEPS = 48  # points of a path, precomputed so that no frame has to compute them
DOTS = 2  # per link
DEVICE = QGraphicsItem.CacheMode.DeviceCoordinateCache
ICON = 14
PADDING, INDENT = sizes.S, sizes.XS


class LinkLine(QGraphicsPathItem):
    """The line of a link from the host. It becomes thicker and takes the accent color while an answer uses the link."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setCacheMode(DEVICE)  # otherwise each moving dot would redraw the whole curve
        self.setZValue(0)

    def follow(self, facts: MachineFacts, route: LinkRoute, *, active: bool) -> None:
        """Draw the line along this route."""
        path = route_path(route)
        if path != self.path():
            self.setPath(path)
        pen = QPen(self._theme.color("accent" if active else "border"), 2 if active else 1.5)
        if not facts.online or facts.left_out or facts.state == "left_out":
            pen.setStyle(Qt.PenStyle.DashLine)
        if pen != self.pen():
            self.setPen(pen)


def route_path(route: LinkRoute) -> QPainterPath:
    """Return the path of a route: a curve that leaves the host horizontally, then a straight line."""
    path = QPainterPath(QPointF(*route.start))
    half = (route.start[0] + route.bend[0]) / 2
    first, second = QPointF(half, route.start[1]), QPointF(half, route.bend[1])
    if route.bend != route.start:
        path.cubicTo(first, second, QPointF(*route.bend))
    path.lineTo(QPointF(*route.end))
    return path


class Plate(QGraphicsItem):
    """A small panel with the measurements of a link. Its opaque background hides lines behind the text."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: list[machine_words.Badge] = []
        self._size = Size(0, 0)
        self.setCacheMode(DEVICE)
        self.setZValue(1)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def show_link(self, facts: MachineFacts, route: LinkRoute, *, compact: bool) -> None:
        """Show the measurements of a machine's link beside its route. Hide the plate if there are none."""
        self.setVisible(facts.link is not None)
        if facts.link is None:
            return
        rows = plate_rows(facts.link, compact=compact)
        size = plate_size(self._theme, [facts.link], compact=compact)
        if size != self._size:
            self.prepareGeometryChange()
            self._size = size
        x, y = route.plate.center
        self.setPos(x - size.w / 2, y - size.h / 2)
        self._rows = rows
        lines = facts.name, machine_words.link_carrier(facts.link), facts.link.trouble
        self.setToolTip(tooltip(*filter(None, lines)))
        self.update()

    def boundingRect(self) -> QRectF:  # noqa: N802  Qt's name
        return QRectF(0, 0, self._size.w, self._size.h)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        theme = self._theme
        pen = QPen(theme.color("hairline"), 1)
        radius = theme.px(sizes.CONTROL_RADIUS)
        drawing.draw_surface(painter, self.boundingRect(), radius, theme.color("card"), pen)
        font, pad, side = theme.font(sizes.CAPTION), theme.px(PADDING), theme.px(ICON)
        line, y = drawing.line_height(font), float(theme.px(INDENT))
        for shown in self._rows:
            where = QRectF(pad, y, self._size.w - 2 * pad, line)
            if shown.icon:
                spot = QRectF(where.x(), where.center().y() - side / 2, side, side)
                drawing.draw_icon(painter, spot, shown.icon, theme.color(shown.color))
                where = where.adjusted(side + theme.px(sizes.XS), 0, 0, 0)
            drawing.draw_text(painter, where, shown.word, font, theme.color(shown.color))
            y += line


def plate_rows(link: LinkFacts, *, compact: bool) -> list[machine_words.Badge]:
    """Return the rows of a plate: the link's speed, its kind and, if known, its share of the request time."""
    rows = [machine_words.Badge(machine_words.link_speed(link), "", "text")]
    if link.trouble and link.kind:
        rows.append(machine_words.poor_link_badge(link))
    elif link.kind and not (compact and link.share is not None):
        rows.append(machine_words.kind_badge(link.worst_kind))
    if link.share is not None and not (compact and len(rows) > 1):
        cost = machine_words.share_badge(link.share)
        rows.append(machine_words.Badge(cost.word, "", cost.color))
    return rows


def plate_size(theme: Theme, links: list[LinkFacts], *, compact: bool) -> Size:
    """Return a plate size that is large enough for any of these links."""
    font = theme.font(sizes.CAPTION)
    indent = theme.px(ICON) + theme.px(sizes.XS)
    wide, rows = 0.0, 1
    for link in links:
        shown = plate_rows(link, compact=compact)
        rows = max(rows, len(shown))
        for badge in shown:
            wide = max(wide, drawing.text_width(badge.word, font) + (indent if badge.icon else 0))
    height = rows * drawing.line_height(font) + 2 * theme.px(INDENT)
    return Size(round(wide + 2 * theme.px(PADDING) + 1), round(height))


THIN, CHOSEN = 1.0, 1.5  # the host's links are thicker
REACH = sizes.S  # distance from the line within which the mouse hits it
CORNER = sizes.S


class LenderLine(QGraphicsPathItem):
    """A thin line between two lenders. It has the accent color while either lender is selected."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setZValue(-1)
        self._figures = LinkFigures(theme, self)

    def follow(self, lender_link: LenderLink, line: Line, room: float, *, chosen: bool) -> None:
        """Draw the link along this line.

        room: the maximum width of the figures on the line.
        """
        path = rounded_path(line, self._theme.px(CORNER))
        if path != self.path():
            self.setPath(path)
        pen = QPen(self._theme.color("accent" if chosen else "border"), CHOSEN if chosen else THIN)
        if pen != self.pen():
            self.setPen(pen)
        self.setToolTip(tooltip(*machine_words.link_details(lender_link)))
        self._figures.show_on(machine_words.link_speed(lender_link.link), line, room, self.toolTip())

    def shape(self) -> QPainterPath:
        """Return a shape that is wide enough to click or hover over."""
        stroker = QPainterPathStroker()
        stroker.setWidth(self._theme.px(REACH))
        return stroker.createStroke(self.path())


class LinkFigures(QGraphicsItem):
    """The speed and round-trip time on a line between neighbors. They are hidden if they do not fit."""

    def __init__(self, theme: Theme, line: LenderLine) -> None:
        super().__init__(line)
        self._theme, self._text, self._where = theme, "", QRectF()

    def show_on(self, text: str, line: Line, room: float, tip: str) -> None:
        """Show the text at the middle of a straight line. Hide it if the line bends or the text does not fit."""
        font = self._theme.font(sizes.CAPTION)
        wide = drawing.text_width(text, font) + 2 * self._theme.px(sizes.S)
        high = drawing.line_height(font) + self._theme.px(sizes.XS)
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
        pen, radius = QPen(theme.color("hairline"), 1), theme.px(sizes.CONTROL_RADIUS)
        drawing.draw_surface(painter, self._where, radius, theme.color("card"), pen)
        font = theme.font(sizes.CAPTION)
        drawing.draw_text(painter, self._where, self._text, font, theme.color("muted"), drawing.CENTER)


def rounded_path(line: Line, radius: float) -> QPainterPath:
    """Return the line as a path with rounded corners. The radius is reduced next to short segments."""
    points = [QPointF(*point) for point in line]
    path = QPainterPath(points[0])
    for (before, corner), (_, after) in pairwise(pairwise(points)):
        reach = min(radius, *(QLineF(corner, end).length() / 2 for end in (before, after)))
        path.lineTo(_towards(corner, before, reach))
        path.quadTo(corner, _towards(corner, after, reach))
    path.lineTo(points[-1])
    return path


def _towards(start: QPointF, end: QPointF, far: float) -> QPointF:
    route = QLineF(start, end)
    route.setLength(far)
    return route.p2()


class Traffic(QObject):
    """The animation of dots that move along active links. `still` turns it off for reduced motion."""

    def __init__(self, view: QGraphicsView, theme: Theme) -> None:
        super().__init__(view)
        self._view, self._theme = view, theme
        self._tracks: dict[str, tuple[QPointF, ...]] = {}
        self._paths: dict[str, QPainterPath] = {}
        self._dots: dict[str, list[QGraphicsEllipseItem]] = {}
        self._frame = 0
        self.still = False
        self._timer = QTimer(self)
        self._timer.setInterval(FRAME_MS)
        self._timer.timeout.connect(self._move)
        view.installEventFilter(self)
        self._window: QObject | None = None

    @property
    def moves(self) -> bool:
        return self._timer.isActive()

    def show_on(self, paths: Mapping[str, QPainterPath]) -> None:
        """Move dots along these paths, which are keyed by machine. An empty mapping removes all dots."""
        if paths != self._paths:
            self._paths = dict(paths)
            self._tracks = {key: _track(path) for key, path in paths.items()}
            self._place_dots()
        self.refresh()

    def refresh(self) -> None:
        """Start or stop the timer, which runs only while the dots are visible."""
        window = self._view.window()
        seen = self._view.isVisible() and not window.isMinimized()
        moves = bool(self._tracks) and seen and not self.still
        for dots in self._dots.values():
            for dot in dots:
                dot.setVisible(moves)
        if moves and not self._timer.isActive():
            self._move()
            self._timer.start()
        elif not moves:
            self._timer.stop()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        """Update the timer when the view or its window is shown, hidden or minimized."""
        kinds = (QEvent.Type.Show, QEvent.Type.Hide, QEvent.Type.WindowStateChange)
        if event.type() in kinds:
            if event.type() == QEvent.Type.Show:  # on Hide, a closing window may be partly destroyed
                self._watch_window()
            QTimer.singleShot(0, self, self.refresh)
        return False

    def _watch_window(self) -> None:
        window = self._view.window()
        if window is not self._window and window is not self._view:
            if self._window is not None:
                self._window.removeEventFilter(self)
            self._window = window
            window.installEventFilter(self)

    def _place_dots(self) -> None:
        scene = self._view.scene()
        for key in self._dots.keys() - self._tracks.keys():
            for dot in self._dots.pop(key):
                scene.removeItem(dot)
        side = self._theme.px(sizes.S)
        for key in self._tracks.keys() - self._dots.keys():
            made = []
            for _ in range(DOTS):
                dot = QGraphicsEllipseItem(-side / 2, -side / 2, side, side)
                dot.setPen(Qt.PenStyle.NoPen)
                dot.setZValue(0.5)  # above the line, below plates and cards
                scene.addItem(dot)
                made.append(dot)
            self._dots[key] = made
        for dots in self._dots.values():
            for dot in dots:
                dot.setBrush(self._theme.color("accent"))

    def _move(self) -> None:
        self._frame = (self._frame + 1) % ROUND_FRAMES
        for key, dots in self._dots.items():
            track = self._tracks[key]
            for number, dot in enumerate(dots):
                at = (self._frame / ROUND_FRAMES + number / DOTS) % 1.0
                there = 2 * at if at < 0.5 else 2 - 2 * at
                dot.setPos(track[round(there * (STEPS - 1))])


def _track(path: QPainterPath) -> tuple[QPointF, ...]:
    return tuple(path.pointAtPercent(step / (STEPS - 1)) for step in range(STEPS))
