"""The card that represents another server on the map: a whole replica that does not belong to the household."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.api.chat_api import OtherServer
from app.gui.look import drawing, formats, sizes
from app.gui.look.theme import Theme
from app.gui.pool.machine_words import moment
from app.gui.pool.map.map_layout import Rect, Size
from app.gui.widgets.labels import tooltip

WIDTH = 248
LINES = 4  # below the name


class ServerItem(QGraphicsItem):
    """A server's card. Nothing links it to the machines, because only whole requests go there."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._size = Size(0, 0)
        self.server: OtherServer | None = None
        self.lines: tuple[str, ...] = ()  # the full text of the card
        self._selected = False
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
        self.setZValue(2)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def show_server(self, server: OtherServer, place: Rect, *, selected: bool) -> None:
        """Show a server in the given rectangle."""
        size = Size(place.w, place.h)
        if size != self._size:
            self.prepareGeometryChange()
            self._size = size
        self.setPos(place.x, place.y)
        self.server, self._selected = server, selected
        self.lines = server_lines(server)
        self.setToolTip(tooltip(*self.lines))
        self.update()

    def boundingRect(self) -> QRectF:  # noqa: N802  Qt's name
        return QRectF(0, 0, self._size.w, self._size.h)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        if self.server is None:
            return
        theme = self._theme
        pen = QPen(theme.color("accent" if self._selected else "border"), 2 if self._selected else 1)
        if not self._selected:
            pen.setStyle(Qt.PenStyle.DotLine)
        drawing.draw_surface(painter, self.boundingRect(), theme.px(sizes.CARD_RADIUS), theme.color("card"), pen)
        pad, y = float(theme.px(sizes.M)), float(theme.px(sizes.M))
        name_font, small = theme.font(sizes.BODY, bold=True), theme.font(sizes.CAPTION)
        room = self._size.w - 2 * pad
        where = QRectF(pad, y, room, drawing.line_height(name_font))
        kind = kind_word()
        kind_w = drawing.text_width(kind, small)
        drawing.draw_text(painter, where, kind, small, theme.color("muted"), drawing.RIGHT)
        name = where.adjusted(0, 0, -kind_w - theme.px(sizes.S), 0)
        drawing.draw_text(painter, name, self.server.name, name_font, theme.color("text"))
        y += where.height() + theme.px(sizes.XS)
        for at, text in enumerate(self.lines[2:]):
            line = QRectF(pad, y, room, drawing.line_height(small))
            color = theme.color("text" if at < LINES - 1 else "muted")
            drawing.draw_text(painter, line, drawing.elided(text, small, room), small, color)
            y += line.height() + theme.px(sizes.XS)


def server_size(theme: Theme) -> Size:
    """Return the size of a server's card."""
    name = drawing.line_height(theme.font(sizes.BODY, bold=True)) + theme.px(sizes.XS)
    line = drawing.line_height(theme.font(sizes.CAPTION)) + theme.px(sizes.XS)
    return Size(theme.px(WIDTH), round(2 * theme.px(sizes.M) - theme.px(sizes.XS) + name + LINES * line))


def server_rows(n_servers: int, size: Size, width: float, gap: float) -> list[Rect]:
    """Return the places of the cards in centered rows within the width, relative to the middle of the top edge."""
    each = max(1, int((width + gap) // (size.w + gap)))
    places = []
    for number in range(n_servers):
        row, at = divmod(number, each)
        in_row = min(each, n_servers - row * each)
        left = -(in_row * size.w + (in_row - 1) * gap) / 2
        places.append(Rect(left + at * (size.w + gap), row * (size.h + gap), size.w, size.h))
    return places


def server_lines(server: OtherServer) -> tuple[str, ...]:
    """Return the complete text of a card: name, kind, models, speed of one answer, of several, and last contact."""
    return (
        server.name,
        kind_word(),
        _tr("Serves {models}").format(models=", ".join(server.models)),
        *figure_lines(server),
        contact_line(server),
    )


def kind_word() -> str:
    return _tr("another server")


def figure_lines(server: OtherServer) -> tuple[str, str]:
    """Return the measured speed of one answer and of several at once, or that it was not measured."""
    if not server.speeds:
        return _tr("Speed not measured"), ""
    model, speed = max(server.speeds.items(), key=lambda item: item[1].at)
    alone = _tr("{speed}, first token after {first}").format(
        speed=formats.speed(speed.decode_tok_s), first=formats.seconds(speed.ttft_s)
    )
    if len(server.models) > 1:
        alone = f"{model}: {alone}"
    best = speed.best
    if best.streams == 1:
        return alone, _tr("No faster with several at once")
    several = _tr("{speed} with {streams} at once").format(speed=formats.speed(best.tok_s), streams=best.streams)
    return alone, several


def contact_line(server: OtherServer) -> str:
    if server.answering:
        return _tr("Answering now: {count}").format(count=server.answering)
    if server.last_contact is None:
        return _tr("Not reached since the start")
    return _tr("Last reached at {time}").format(time=moment(server.last_contact))


def _tr(text: str) -> str:
    return QCoreApplication.translate("ServerItem", text)
