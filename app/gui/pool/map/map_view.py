"""The view that displays the map and handles its mouse and keyboard input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QPoint, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QGraphicsScene, QGraphicsView

from app.api.chat_api import OtherServer
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.motion import Motion
from app.gui.look.theme import Theme
from app.gui.pool import machine_words
from app.gui.pool.machine_facts import LenderLink, MachineFacts
from app.gui.pool.map.card_item import CardItem, card_sizes, has_note
from app.gui.pool.map.link_items import LenderLine, LinkLine, Plate, Traffic, plate_size, route_path
from app.gui.pool.map.map_layout import FittedLayout, LenderPairs, MapPositions, Rect, Size, Sizes, fit_layout
from app.gui.pool.map.server_item import ServerItem, server_rows, server_size

SMALLEST_ZOOM = 11 / sizes.CAPTION  # keeps text at 11 pixels or more
ZOOMS = (1.4, 1.3, 1.2, 1.1, 1.0, SMALLEST_ZOOM)  # the largest one that shows everything is used
EDGE = sizes.M
SERVER_GAP = sizes.L
# the number of links between five lenders; with more, only those of the selected lender are drawn
MOST_LENDER_LINES = 10
Key = Qt.Key
STEPS = {Key.Key_Left: (-1, 0), Key.Key_Right: (1, 0), Key.Key_Up: (0, -1), Key.Key_Down: (0, 1)}


class MapView(QGraphicsView):
    """The map. The mouse and the arrow keys select cards, Enter opens the details, and Space leaves a machine out."""

    chosen = Signal(str)  # machine ID, or ""
    opened = Signal(str)  # by Enter or a double click
    toggled = Signal(str)  # by Space
    menu_wanted = Signal(str, QPoint)  # machine ID and screen position

    def __init__(self, theme: Theme, motion: Motion) -> None:
        scene = QGraphicsScene()
        super().__init__(scene)
        scene.setParent(self)
        self._theme, self._motion = theme, motion
        self._machines: tuple[MachineFacts, ...] = ()
        self._active: frozenset[str] = frozenset()
        self._cards: dict[str, CardItem] = {}
        self._lines: dict[str, LinkLine] = {}
        self._plates: dict[str, Plate] = {}
        self._servers: tuple[OtherServer, ...] = ()
        self._server_items: dict[str, ServerItem] = {}  # by the key of the card
        self._lender_links: tuple[LenderLink, ...] = ()
        self._lender_lines: dict[str, LenderLine] = {}
        self._selected = ""
        self.places: MapPositions | None = None
        self.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.SmartViewportUpdate)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(self.tr("Map of the household"))
        self.setAccessibleDescription(self._instructions())
        self.traffic = Traffic(self, theme)
        theme.changed.connect(self._draw)
        motion.changed.connect(self._motion_changed)
        self._motion_changed()

    @property
    def selected(self) -> str:
        return self._selected

    @property
    def has_selected_server(self) -> bool:
        """Return whether the selected card is that of another server."""
        return self._selected in self._server_items

    def show_machines(
        self,
        machines: Sequence[MachineFacts],
        active: frozenset[str] = frozenset(),
        lender_links: Sequence[LenderLink] = (),
        servers: Sequence[OtherServer] = (),
    ) -> None:
        """Show the machines, the first one in the center. Those in `active` are computing an answer. Other servers
        stand below them.
        """
        now = tuple(machines), active, tuple(lender_links), tuple(servers)
        if now != (self._machines, self._active, self._lender_links, self._servers):
            self._machines, self._active, self._lender_links, self._servers = now
            self._draw()

    def select(self, machine: str) -> None:
        """Select the card of a machine. "" clears the selection."""
        if machine != self._selected:
            self._selected = machine
            self._draw()
            card, server = self._cards.get(machine), self._server_items.get(machine)
            lines = card.lines if card else server.lines if server else ()
            self.setAccessibleDescription(self._description(machine, lines) if lines else self._instructions())
            if server is not None and self.hasFocus():
                announce(self, ", ".join(server.lines[:2]))
            if card is not None and card.facts is not None and self.hasFocus():
                announce(self, f"{card.facts.name}, {machine_words.state_badge(card.facts).word}")
            self.chosen.emit("" if server else machine)

    def _instructions(self) -> str:
        return self.tr("Use the arrow keys to select a machine. The table shows the same details.")

    def _description(self, machine: str, lines: Sequence[str]) -> str:
        """Return the full text of a card, plus the machine's links to machines other than the central one."""
        links = [machine_words.link_line(link) for link in self._lender_links if machine in link.ends]
        return "\n".join((*lines, *links))

    # Drawing

    def _draw(self) -> None:
        if not self._machines:
            return
        center, *lenders = self._machines
        drawn = self._visible_lender_links()
        layout = self._fit_layout(drawn)
        self.places, compact = layout.places, layout.compact
        self._forget({machine.id for machine in self._machines}, center.id)
        self._forget_lender_lines({link.key for link in drawn} if self.places.lender_lines else set())
        self._card(center, self.places.host, compact=compact)
        paths = {}
        for facts, place, route in zip(lenders, self.places.cards, self.places.routes, strict=True):
            self._card(facts, place, compact=compact)
            active = facts.id in self._active and facts.link is not None
            self._line(facts.id).follow(facts, route, active=active)
            self._plate(facts.id).show_link(facts, route, compact=compact)
            if active:
                paths[facts.id] = route_path(route)
        for link, line in zip(drawn, self.places.lender_lines, strict=False):
            room, chosen = self.places.cards[0].w, self._selected in link.ends
            self._lender_line(link.key).follow(link, line, room, chosen=chosen)
        self.traffic.show_on(paths)
        self._fit(self._draw_servers(self.places.bounds, layout.zoom), layout.zoom)
        if (item := self._item(self._selected)) is not None:
            self.ensureVisible(item)

    def _draw_servers(self, bounds: Rect, zoom: float) -> Rect:
        """Draw the servers' cards in rows below the machines. Return the bounds of everything."""
        names = {server_key(server) for server in self._servers}
        for key in self._server_items.keys() - names:
            self.scene().removeItem(self._server_items.pop(key))
        if not self._servers:
            return bounds
        gap = self._theme.px(SERVER_GAP)
        width = max(bounds.w, (self.maximumViewportSize().width() - 2 * self._theme.px(EDGE)) / zoom)
        places = server_rows(len(self._servers), server_size(self._theme), width, gap)
        middle, top = bounds.x + bounds.w / 2, bounds.bottom + gap
        for server, place in zip(self._servers, places, strict=True):
            key = server_key(server)
            if key not in self._server_items:
                self._server_items[key] = ServerItem(self._theme)
                self.scene().addItem(self._server_items[key])
            spot = replace(place, x=middle + place.x, y=top + place.y)
            self._server_items[key].show_server(server, spot, selected=key == self._selected)
        left = min(bounds.x, *(middle + place.x for place in places))
        right = max(bounds.right, *(middle + place.right for place in places))
        return Rect(left, bounds.y, right - left, top + places[-1].bottom - bounds.y)

    def _servers_height(self, width: float) -> float:
        """Return the height that the servers' rows take, at the given width."""
        if not self._servers:
            return 0.0
        gap = self._theme.px(SERVER_GAP)
        return server_rows(len(self._servers), server_size(self._theme), width, gap)[-1].bottom + gap

    def _visible_lender_links(self) -> list[LenderLink]:
        """Return the links between lenders to draw: all if there are few, otherwise only the selected machine's."""
        lenders = {machine.id for machine in self._machines[1:]}
        known = [link for link in self._lender_links if lenders.issuperset(link.ends)]
        if _pairs(len(lenders)) <= MOST_LENDER_LINES:
            return known
        return [link for link in known if self._selected in link.ends]

    def _fit_layout(self, drawn: Sequence[LenderLink]) -> FittedLayout:
        whole, edge = self.maximumViewportSize(), 2 * self._theme.px(EDGE)
        room = Size(whole.width() - edge, whole.height() - edge)
        room = replace(room, h=max(1.0, room.h - self._servers_height(room.w)))
        zooms = tuple(zoom for zoom in ZOOMS if zoom <= 1) if self._servers else ZOOMS  # else their rows take more
        full, small = self._sizes(compact=False), self._sizes(compact=True)
        n_lenders = len(self._machines) - 1
        number = {machine.id: number for number, machine in enumerate(self._machines[1:])}
        pairs = tuple((number[link.ends[0]], number[link.ends[1]]) for link in drawn)
        lender_pairs = LenderPairs(pairs, few=not self._lender_links or _pairs(n_lenders) <= MOST_LENDER_LINES)
        layout = fit_layout(n_lenders, full, small, room, zooms, lender_pairs)
        if not layout.fits(room):
            beside = self.verticalScrollBar().sizeHint().width()
            layout = fit_layout(n_lenders, full, small, replace(room, w=room.w - beside), zooms, lender_pairs)
        self._show_bars(layout, room)
        return layout

    def _show_bars(self, layout: FittedLayout, room: Size) -> None:
        """Show the scroll bars that are needed. Each one reduces the space in the other direction."""
        bounds, on = layout.places.bounds, Qt.ScrollBarPolicy.ScrollBarAsNeeded
        room = replace(room, h=room.h + self._servers_height(room.w))
        bounds = replace(bounds, h=bounds.h + self._servers_height(room.w / layout.zoom))
        off = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        high = bounds.h * layout.zoom > room.h
        beside = self.verticalScrollBar().sizeHint().width() if high else 0
        self.setVerticalScrollBarPolicy(on if high else off)
        self.setHorizontalScrollBarPolicy(on if bounds.w * layout.zoom > room.w - beside else off)

    def _sizes(self, *, compact: bool) -> Sizes:
        links = [machine.link for machine in self._machines if machine.link]
        with_part = any(machine_words.relation(machine) for machine in self._machines[1:])
        with_note = any(has_note(self._theme, machine) for machine in self._machines)
        host, card = card_sizes(self._theme, compact=compact, with_part=with_part, with_note=with_note)
        return Sizes(host, card, plate_size(self._theme, links, compact=compact), self._theme.scale)

    def _card(self, facts: MachineFacts, place: Rect, *, compact: bool) -> None:
        if facts.id not in self._cards:
            self._cards[facts.id] = CardItem(self._theme)
            self.scene().addItem(self._cards[facts.id])
        selected = facts.id == self._selected
        self._cards[facts.id].show_machine(facts, place, compact=compact, selected=selected)

    def _line(self, machine: str) -> LinkLine:
        if machine not in self._lines:
            self._lines[machine] = LinkLine(self._theme)
            self.scene().addItem(self._lines[machine])
        return self._lines[machine]

    def _plate(self, machine: str) -> Plate:
        if machine not in self._plates:
            self._plates[machine] = Plate(self._theme)
            self.scene().addItem(self._plates[machine])
        return self._plates[machine]

    def _lender_line(self, key: str) -> LenderLine:
        if key not in self._lender_lines:
            self._lender_lines[key] = LenderLine(self._theme)
            self.scene().addItem(self._lender_lines[key])
        return self._lender_lines[key]

    def _forget_lender_lines(self, there: set[str]) -> None:
        for key in self._lender_lines.keys() - there:
            self.scene().removeItem(self._lender_lines.pop(key))

    def _forget(self, there: set[str], center: str) -> None:
        """Remove the items of machines that are gone, and the link of the machine that is now in the center."""
        for items, kept in ((self._cards, there), (self._lines, there - {center}), (self._plates, there - {center})):
            for key in items.keys() - kept:
                self.scene().removeItem(items.pop(key))

    def _fit(self, bounds: Rect, zoom: float) -> None:
        """Set the zoom factor, and add equal margins around the scene. A scene that is too large scrolls."""
        edge = self._theme.px(EDGE) / zoom
        whole = QRectF(bounds.x, bounds.y, bounds.w, bounds.h).adjusted(-edge, -edge, edge, edge)
        self.resetTransform()
        self.scale(zoom, zoom)
        self.setSceneRect(whole)

    def _motion_changed(self) -> None:
        self.traffic.still = self._motion.still
        self.traffic.refresh()

    def drawBackground(self, painter: QPainter, rect: QRectF | QRect) -> None:  # noqa: N802  Qt's name
        """Draw the panel behind the map."""
        painter.save()
        painter.resetTransform()
        whole = QRectF(self.viewport().rect())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        color = self._theme.color("hairline")
        painter.setPen(QPen(color, 1))
        painter.setBrush(self._theme.color("code"))
        radius = self._theme.px(sizes.CARD_RADIUS)
        painter.drawRoundedRect(whole.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        painter.restore()

    def scrollContentsBy(self, dx: int, dy: int) -> None:  # noqa: N802  Qt's name
        """Scroll the map, but not the panel behind it."""
        super().scrollContentsBy(dx, dy)
        self.viewport().update()

    # Keys and mouse

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._draw()

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802  Qt's name
        self.select(self._at(event.position().toPoint()))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802  Qt's name
        if machine := self._at(event.position().toPoint()):
            self.opened.emit(machine)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802  Qt's name
        by_key = event.reason() is QContextMenuEvent.Reason.Keyboard
        machine = self._selected if by_key else self._at(event.pos())
        if machine in self._cards:
            self.select(machine)
            spot = self.mapFromScene(self._cards[machine].sceneBoundingRect().center())
            where = self.viewport().mapToGlobal(spot) if by_key else event.globalPos()
            self.menu_wanted.emit(machine, where)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        key = Key(event.key())
        if key in STEPS:
            self._step(*STEPS[key])
        elif key in (Key.Key_Return, Key.Key_Enter) and self._selected:
            self.opened.emit(self._selected)
        elif key == Key.Key_Space and self._selected:
            self.toggled.emit(self._selected)
        elif key == Key.Key_Escape and self._selected:
            self.select("")
        else:
            super().keyPressEvent(event)

    def _at(self, where: QPoint) -> str:
        """Return the ID of the machine whose card or plate is at this point, or ""."""
        hit = self.itemAt(where)
        for drawn in (self._cards, self._plates, self._server_items):
            for key, item in drawn.items():
                if item is hit:
                    return key
        return ""

    def _step(self, right: int, down: int) -> None:
        """Select the nearest card in the given direction."""
        current = self._item(self._selected)
        if current is None:
            self.select(self._machines[0].id if self._machines else "")
            return
        start = current.sceneBoundingRect().center()
        best, nearest = "", 0.0
        for key, card in (*self._cards.items(), *self._server_items.items()):
            route = card.sceneBoundingRect().center() - start
            ahead = right * route.x() + down * route.y()
            aside = abs(route.y() if right else route.x())
            if ahead > 1 and (not best or ahead + 2 * aside < nearest):
                best, nearest = key, ahead + 2 * aside
        if best:
            self.select(best)
            if (item := self._item(best)) is not None:
                self.ensureVisible(item)

    def _item(self, key: str) -> CardItem | ServerItem | None:
        """Return the card of a machine or a server."""
        return self._cards.get(key) or self._server_items.get(key)


def server_key(server: OtherServer) -> str:
    """Return the key of a server's card, which no machine has."""
    return f"server {server.name}"


def _pairs(n_lenders: int) -> int:
    return n_lenders * (n_lenders - 1) // 2
