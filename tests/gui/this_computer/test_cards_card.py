"""The graphics cards on the page "This computer": over a real node, and what each state of a card says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.api.computer import Cards, CardState
from app.core.errors import Reason
from app.gui.this_computer.cards_card import CardsCard, card_words
from app.gui.this_computer.computer_page import ComputerPage
from tests.gui.desk import Desk

GIB = 1 << 30
WITHIN_MS = 20_000
BIG = CardState("0000:01:00.0", "Big card", "CUDA", total_bytes=12 * GIB, computes=True, celsius=61.4, busy_percent=35)
OFF = Reason("card_switched_off")
SMALL = CardState("0000:00:02.0", "Small card", "Vulkan", True, 2 * GIB, on=False, reason_facts=OFF)


def test_a_card_says_what_it_does_and_how_it_fares() -> None:
    assert card_words(BIG) == "Runs models through CUDA (12.0 GiB). Now: 61 °C, 35% busy."
    assert card_words(SMALL) == "Doesn't run models (2.0 GiB shared with the processor). It is switched off."
    unknown = CardState(api="Vulkan", total_bytes=GIB, computes=True)
    assert card_words(unknown).endswith("This system doesn't report the card's temperature or usage.")
    warm = CardState(api="Vulkan", total_bytes=GIB, computes=True, celsius=61.4)
    assert card_words(warm).endswith("Now: 61 °C.")


@pytest.fixture
def page(qtbot: QtBot, at_lone: Desk) -> Iterator[ComputerPage]:
    made = ComputerPage(at_lone.services)
    qtbot.addWidget(made)
    made.resize(1000, 760)
    made.show()
    qtbot.waitUntil(lambda: made.lending.is_known, timeout=WITHIN_MS)
    yield made
    done: list[object] = []
    client = at_lone.services.client
    client.post("/cards", {"off": [], "memory_percent": 100, "card_only": False}, done.append, done.append)
    client.post("/lending", {"card_celsius": 0}, done.append, done.append)
    qtbot.waitUntil(lambda: len(done) == 2, timeout=WITHIN_MS)


def shown(card: CardsCard, *cards: CardState) -> None:
    """Show these cards until the next look at the node."""
    card.watch(False)
    card._looked(Cards(list(cards)))


def test_without_a_card_there_is_nothing_to_limit(page: ComputerPage) -> None:
    assert page.graphics.isHidden()


def test_each_card_has_a_switch_with_its_name(qtbot: QtBot, page: ComputerPage, monkeypatch: Any) -> None:
    card = page.graphics
    orders: list[tuple[Any, Any]] = []
    monkeypatch.setattr(page.lending, "change_cards", lambda limits, before: orders.append((limits, before)))
    shown(card, BIG, SMALL)
    assert card.isVisible()
    big, small = card.switches[BIG.key], card.switches[SMALL.key]
    assert (big.accessibleName(), big.isChecked()) == ("Use Big card", True)
    assert (small.accessibleName(), small.isChecked()) == ("Use Small card", False)
    big.click()
    small.click()
    card.memory.setValue(80)
    qtbot.waitUntil(lambda: len(orders) == 3, timeout=WITHIN_MS)
    card.card_only.click()
    before = {"off": [SMALL.key]}
    assert orders == [
        ({"off": [SMALL.key, BIG.key]}, before),
        ({"off": [BIG.key]}, {"off": [SMALL.key, BIG.key]}),
        ({"memory_percent": 80}, {"memory_percent": 100}),
        ({"card_only": True}, {"card_only": False}),
    ]
    shown(card, BIG)
    assert card.switches[BIG.key] is not big, "the rows are made anew if there are other cards"
    assert list(card.switches) == [BIG.key]


def test_a_refused_change_shows_the_card_as_it_is(qtbot: QtBot, page: ComputerPage) -> None:
    shown(page.graphics, BIG)  # of which the node knows nothing
    page.graphics.switches[BIG.key].click()
    qtbot.waitUntil(page.notice.isVisible, timeout=WITHIN_MS)
    assert page.graphics.switches[BIG.key].isChecked()


def test_an_owner_who_lends_only_the_card_lends_nothing_without_one_and_can_undo_that(
    qtbot: QtBot, page: ComputerPage
) -> None:
    def code() -> str | None:
        page.lending.refresh()
        return page.lending.state.code if page.lending.state else ""

    card = page.graphics
    shown(card, BIG)
    card.card_only.click()
    qtbot.waitUntil(lambda: code() == "pause_no_card", timeout=WITHIN_MS)
    qtbot.waitUntil(page.undo.isVisible, timeout=WITHIN_MS)
    qtbot.waitUntil(lambda: not card.switches, timeout=WITHIN_MS)
    assert card.isVisible(), "the switch stays there to take the choice back"
    assert card._only.reading.text().endswith("If no card can be used, nothing is lent.")
    page.undo.click()
    qtbot.waitUntil(lambda: not card.isVisible(), timeout=WITHIN_MS)
    qtbot.waitUntil(lambda: code() is None, timeout=WITHIN_MS)


def test_the_temperature_of_the_card_is_a_rule(qtbot: QtBot, page: ComputerPage) -> None:
    rules = page.rules
    assert not rules.card_celsius.isVisible()
    rules.card_hot.click()
    qtbot.waitUntil(lambda: page.lending.rules.card_celsius == 85, timeout=WITHIN_MS)
    assert rules.card_celsius.isVisible()
    assert rules._card_hot.reading.text() == "Temperature of the graphics card: unknown."
    rules.card_celsius.setValue(80)
    qtbot.waitUntil(lambda: page.lending.rules.card_celsius == 80, timeout=WITHIN_MS)
    rules._show_card_hot(80, 61.4)
    assert rules._card_hot.reading.text() == "Now: the graphics card is at 61 °C."
    rules.card_hot.click()
    qtbot.waitUntil(lambda: page.lending.rules.card_celsius == 0, timeout=WITHIN_MS)
