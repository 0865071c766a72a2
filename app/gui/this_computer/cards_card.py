"""The card for the graphics cards of this computer, with a switch for each and limits for all of them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.api.computer import Cards, CardState
from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.look.theme import set_role
from app.gui.this_computer.lending_store import CARDS, LOOK_MS, Json, LendingStore
from app.gui.this_computer.rule_controls import DebouncedNumber, RuleRow
from app.gui.widgets.buttons import Switch
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import clear_layout, column, line

LEAST_PERCENT = 10  # the node's own limit


class CardsCard(QFrame):
    """The card for graphics cards. Changes take effect immediately and can be undone.

    It is hidden if no graphics card is known and no limit is set.
    """

    def __init__(self, services: AppContext, lending: LendingStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._client, self._pool, self._theme, self._lending = services.client, services.pool, services.theme, lending
        self._look: Call | None = None
        self._cards = Cards()
        self._chosen_off: frozenset[str] | None = None
        self.switches: dict[str, Switch] = {}  # by the key of the card
        self._rows: dict[str, RuleRow] = {}
        self._list: QVBoxLayout = column(gap=sizes.M)
        about = paragraph(
            _tr(
                "If you turn off a card, the layers of other machines are removed from it immediately. Your own "
                "models stay on it until you load them again."
            ),
            "caption",
        )
        head = column(label(_tr("Graphics cards"), "section"), about, gap=sizes.XS)
        box = column(head, self._list, line(), self._memory_row(), line(), self._only_row(), gap=sizes.M)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_MS)
        self._timer.timeout.connect(self.refresh)
        lending.cards_changed.connect(self.refresh)
        lending.failed.connect(self._refused)
        self._show()

    def _memory_row(self) -> QWidget:
        title = _tr("Maximum use of a card's memory")
        self.memory = DebouncedNumber(title, "%", (LEAST_PERCENT, 100), self._memory_chosen)
        row = RuleRow(title, self.memory)
        row.say(
            _tr(
                "This limit applies to all models on this computer together. Lower it to keep memory free for other "
                "programs."
            )
        )
        return row

    def _only_row(self) -> QWidget:
        title = _tr("Lend only the graphics card")
        self.card_only = Switch(self._theme, title, lambda on: self._change({"card_only": on}))
        self._only = RuleRow(title, self.card_only)
        return self._only

    def watch(self, on: bool) -> None:
        """Start or stop updating the state of the cards."""
        if on:
            self._timer.start()
            self.refresh()
        else:
            self._timer.stop()

    def refresh(self) -> None:
        """Request the state of the cards."""
        if self._look is None and self._pool.is_there:
            self._look = self._client.get(CARDS, self._looked, self._not_looked, answer=Cards)

    @property
    def _keys_off(self) -> frozenset[str]:
        """The keys of the cards that are switched off, including changes that the node has not confirmed yet."""
        if self._chosen_off is not None:
            return self._chosen_off
        return frozenset(card.key for card in self._cards.cards if not card.on)

    def _looked(self, cards: Cards) -> None:
        self._look, self._cards, self._chosen_off = None, cards, None
        self._show()

    def _refused(self, _: AppError) -> None:
        """Show the actual state again, because the node refused the change."""
        self._chosen_off = None
        self._show()

    def _not_looked(self, _: AppError) -> None:
        """Keep the last known state. The window already reports that the node is unavailable."""
        self._look = None

    def _show(self, _: object = None) -> None:
        cards = self._cards
        if list(self._rows) != [card.key for card in cards.cards]:
            self._lay_out(cards.cards)
        for card in cards.cards:
            self.switches[card.key].show_on(card.key not in self._keys_off)
            self._rows[card.key].say(card_words(card))
        self.memory.show_value(cards.memory_percent)
        self.card_only.show_on(cards.card_only)
        only = _tr("Other machines can use the card but not the processor. If no card can be used, nothing is lent.")
        both = _tr("Other machines can also use the processor for anything that the card can't hold or compute.")
        self._only.say(only if cards.card_only else both)
        show_if(self, bool(cards.cards) or cards.card_only or cards.memory_percent < 100)

    def _lay_out(self, cards: list[CardState]) -> None:
        clear_layout(self._list)
        self.switches.clear()
        self._rows.clear()
        for number, card in enumerate(cards):
            if number:
                self._list.addWidget(line())
            name = _tr("Use {card}").format(card=card.label)
            switch = Switch(self._theme, name, self._chooser(card.key))
            self.switches[card.key], self._rows[card.key] = switch, RuleRow(card.label, switch)
            self._list.addWidget(self._rows[card.key])

    def _chooser(self, key: str) -> Callable[[bool], None]:
        """Return the function that a card's switch calls. Qt would call a `partial` without the argument."""
        return lambda on: self._switched(key, on)

    def _switched(self, key: str, on: bool) -> None:
        off = self._keys_off - {key} if on else self._keys_off | {key}
        self._change({"off": sorted(off)})
        self._chosen_off = off

    def _memory_chosen(self, percent: int) -> None:
        self._change({"memory_percent": percent})

    def _change(self, limits: Json) -> None:
        now: Json = {
            "off": sorted(self._keys_off),
            "memory_percent": self._cards.memory_percent,
            "card_only": self._cards.card_only,
        }
        if self._look is not None:  # its answer would be older than this change
            self._look.cancel()
            self._look = None
        self._lending.change_cards(limits, {name: now[name] for name in limits})


def card_words(card: CardState) -> str:
    """Return a text about the use of a card, or why it is not used, and its sensor readings."""
    shared = _tr("{size} shared with the processor").format(size=formats.size(card.total_bytes))
    memory = shared if card.is_integrated else formats.size(card.total_bytes)
    if not card.computes:
        why = said(card.reason_facts) if card.reason_facts else ""
        return _tr("Doesn't run models ({memory}). {why}").format(memory=memory, why=why).strip()
    words = _tr("Runs models through {api} ({memory}).").format(api=card.api, memory=memory)
    return f"{words} {_readings(card)}"


def _readings(card: CardState) -> str:
    values = []
    if card.celsius is not None:
        values.append(_tr("{degrees} °C").format(degrees=round(card.celsius)))
    if card.busy_percent is not None:
        values.append(_tr("{percent}% busy").format(percent=round(card.busy_percent)))
    if not values:
        return _tr("This system doesn't report the card's temperature or usage.")
    return _tr("Now: {values}.").format(values=", ".join(values))


def _tr(text: str) -> str:
    return QCoreApplication.translate("Cards", text)
