"""The card that represents a machine on the map."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.gui.look import drawing, formats, sizes
from app.gui.look.theme import Theme
from app.gui.pool import machine_words
from app.gui.pool.machine_facts import MachineFacts
from app.gui.pool.map.map_layout import Rect, Size
from app.gui.widgets.labels import tooltip

WIDTH, HOST_WIDTH = 212, 212
COMPACT_WIDTH, COMPACT_HOST_WIDTH = 176, 184
NOTE_LINES = 2  # lines of the note; a compact card has only one
BAR, SMALL_BAR, STATE_ICON = 8, 6, 14


class CardItem(QGraphicsItem):
    """A machine's card. Qt caches its image, so the card is repainted only when it is updated."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._size = Size(0, 0)
        self.facts: MachineFacts | None = None
        self.lines: tuple[str, ...] = ()  # the full text of the card
        self._compact = self._selected = False
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
        self.setZValue(2)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def show_machine(self, facts: MachineFacts, place: Rect, *, compact: bool, selected: bool) -> None:
        """Show a machine in the given rectangle."""
        size = Size(place.w, place.h)
        if size != self._size:
            self.prepareGeometryChange()
            self._size = size
        self.setPos(place.x, place.y)
        now = (facts, compact, selected)
        if now != (self.facts, self._compact, self._selected):
            self.facts, self._compact, self._selected = now
            self.lines = all_lines(facts)
            self.setToolTip(tooltip(*self.lines))
        self.update()

    def boundingRect(self) -> QRectF:  # noqa: N802  Qt's name
        return QRectF(0, 0, self._size.w, self._size.h)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        if self.facts is None:
            return
        drawing.draw_surface(
            painter,
            self.boundingRect(),
            self._theme.px(sizes.CARD_RADIUS),
            self._theme.color("card"),
            self._border(self.facts),
        )
        _Lines(painter, self._theme, self._size.w, self.facts).draw(compact=self._compact)

    def _border(self, facts: MachineFacts) -> QPen:
        if self._selected:
            return QPen(self._theme.color("accent"), 3 if facts.host else 2)
        pen = QPen(self._theme.color("border" if facts.host else "hairline"), 2 if facts.host else 1)
        if _is_faint(facts):
            pen.setColor(self._theme.color("border"))
            pen.setStyle(Qt.PenStyle.DashLine)
        return pen


class _Lines:
    """A painter that draws the lines of a card from top to bottom."""

    def __init__(self, painter: QPainter, theme: Theme, width: float, facts: MachineFacts) -> None:
        self._painter, self._theme, self._facts = painter, theme, facts
        pad = theme.px(sizes.M)
        self._x, self._w, self._y = float(pad), width - 2 * pad, float(pad)
        self._name = theme.font(sizes.BODY, bold=True)
        self._small = theme.font(sizes.CAPTION)
        self._muted = theme.color("muted")
        self._text = self._muted if _is_faint(facts) else theme.color("text")

    def draw(self, *, compact: bool) -> None:
        facts = self._facts
        self._head(with_word=not compact)
        if part := machine_words.relation(facts):
            self._line(part, self._text)
        if compact:
            self._bar(SMALL_BAR)
            self._line(machine_words.lent_memory(facts), self._text)
            self._line(last_line(facts), self._muted)
            return
        kind = facts.hardware.device or machine_words.roles_text(facts.roles)
        self._line(kind, self._muted, machine_words.temperature(facts))
        self._bar(BAR)
        held = machine_words.lent_memory(facts)
        self._line(held, self._text, self._total(held))
        for line in drawing.wrapped(last_line(facts), self._small, self._w, NOTE_LINES):
            self._line(line, self._muted)

    def _total(self, beside: str) -> str:
        """Return the longest form of the total memory that fits to the right of `beside`, or ""."""
        size = formats.size(self._facts.memory.total) if self._facts.memory.total else ""
        room = self._w - drawing.text_width(beside, self._small) - self._theme.px(sizes.S)
        texts = (machine_words.total_memory(size), size) if size else ()
        return next((text for text in texts if drawing.text_width(text, self._small) <= room), "")

    def _row(self, height: float) -> QRectF:
        where = QRectF(self._x, self._y, self._w, height)
        self._y += height + self._theme.px(sizes.XS)
        return where

    def _head(self, *, with_word: bool) -> None:
        """Draw the name on the left and the state on the right."""
        where = self._row(drawing.line_height(self._name))
        shown, side = machine_words.state_badge(self._facts), self._theme.px(STATE_ICON)
        color, gap = self._theme.color(shown.color), self._theme.px(sizes.XS)
        taken = float(side)
        word = drawing.text_width(shown.word, self._small) + gap
        if with_word and drawing.text_width(self._facts.name, self._name) + gap + word + side < self._w:
            taken += word
            drawing.draw_text(self._painter, where, shown.word, self._small, color, drawing.RIGHT)
        spot = QRectF(where.right() - taken, where.center().y() - side / 2, side, side)
        drawing.draw_icon(self._painter, spot, shown.icon, color)
        name = where.adjusted(0, 0, -taken - gap, 0)
        drawing.draw_text(self._painter, name, self._facts.name, self._name, self._text)

    def _line(self, left: str, color: QColor, right: str = "") -> None:
        where = self._row(drawing.line_height(self._small))
        if right:
            drawing.draw_text(self._painter, where, right, self._small, self._muted, drawing.RIGHT)
            where = where.adjusted(0, 0, -drawing.text_width(right, self._small) - self._theme.px(sizes.S), 0)
        drawing.draw_text(self._painter, where, left, self._small, color)

    def _bar(self, height: int) -> None:
        self._y += self._theme.px(sizes.XS)
        where = self._row(self._theme.px(height))
        lent = self._facts.memory.lent
        fill = self._theme.color("border" if _is_faint(self._facts) else "accent")
        share = self._facts.memory.used / lent if lent else 0.0
        drawing.draw_bar(self._painter, where, share, self._theme.color("hairline"), fill)


def all_lines(facts: MachineFacts) -> tuple[str, ...]:
    """Return the complete text of a card, including the parts that do not fit on it."""
    lines = (
        facts.name,
        machine_words.relation(facts),
        machine_words.state_badge(facts).word,
        facts.hardware.device,
        machine_words.temperature(facts),
        machine_words.all_memory(facts),
        machine_words.own_use_note(facts),
        machine_words.held_models(facts),
        machine_words.used_by(facts.used_by) if facts.used_by else "",
        machine_words.state_reason(facts),
        machine_words.roles_text(facts.roles),
        machine_words.power(facts),
        machine_words.version_note(facts),
    )
    return tuple(filter(None, lines))


def last_line(facts: MachineFacts) -> str:
    """Return the note at the bottom of a card, such as the reason for the state, held models, users or roles."""
    used_by = machine_words.used_by(facts.used_by) if facts.used_by else ""
    if facts.this and used_by:
        return used_by
    held, roles = machine_words.held_models(facts), machine_words.roles_text(facts.roles)
    return machine_words.state_reason(facts) or held or used_by or roles


def has_note(theme: Theme, facts: MachineFacts) -> bool:
    """Return whether the note needs two lines."""
    room = theme.px(WIDTH) - 2 * theme.px(sizes.M)
    return len(drawing.wrapped(last_line(facts), theme.font(sizes.CAPTION), room, NOTE_LINES)) > 1


def card_sizes(theme: Theme, *, compact: bool, with_part: bool = False, with_note: bool = False) -> tuple[Size, Size]:
    """Return the size of the host's card and the size of the lenders' cards.

    with_part: whether any lender's card has a line such as `Host`. with_note: whether any card has a two-line note.
    """
    name = drawing.line_height(theme.font(sizes.BODY, bold=True)) + theme.px(sizes.XS)
    line = drawing.line_height(theme.font(sizes.CAPTION)) + theme.px(sizes.XS)
    pads = 2 * theme.px(sizes.M) - theme.px(sizes.XS)
    bar = 2 * theme.px(sizes.XS) + theme.px(SMALL_BAR if compact else BAR)
    height = pads + name + bar + line * (2 if compact else 4 if with_note else 3)
    wide, host_wide = (COMPACT_WIDTH, COMPACT_HOST_WIDTH) if compact else (WIDTH, HOST_WIDTH)
    host = Size(theme.px(host_wide), round(height + line))
    return host, Size(theme.px(wide), round(height + (line if with_part else 0)))


def _is_faint(facts: MachineFacts) -> bool:
    return facts.left_out or facts.state in ("offline", "left_out")
