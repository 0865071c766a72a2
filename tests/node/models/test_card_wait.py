"""Tests of loads that begin before this computer's graphics cards have been tested."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from app.api.plans import Progress
from app.core.errors import Reason
from app.core.reasons import said
from app.machine.hardware.cards import PROCESSOR_ONLY, UnusedCard, why_no_card
from app.node.models import load_queue
from app.node.models.load_queue import wait_for_cards
from tests.node.graphics_stub import Cards


class CardsInTest(Cards):
    """Cards whose test ends when the event is set."""

    def __init__(self, folder: Path, *rooms: int) -> None:
        super().__init__(folder, *rooms)
        self.over = asyncio.Event()

    @property
    def is_testing(self) -> bool:  # type: ignore[override]
        return not self.over.is_set()

    async def tested(self) -> None:
        await self.over.wait()


@pytest.fixture(autouse=True)
def _shown_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_queue, "SHOWN_AFTER_SECONDS", 0.01)


async def test_a_load_waits_for_the_test_and_tells_it(tmp_path: Path) -> None:
    cards, shown = CardsInTest(tmp_path, 1 << 30), list[Progress]()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wait_for_cards(cards, shown.append), name="wait")
        await asyncio.sleep(0.05)
        assert not waiting.done()
        assert [(line.step, line.done, line.total) for line in shown] == [("testing_card", 0, 1)]
        cards.over.set()
    assert [(line.step, line.done, line.total) for line in shown[1:]] == [("testing_card", 1, 1)]
    assert why_no_card(cards, "den") is None


async def test_a_load_does_not_wait_forever_and_the_plan_says_so(tmp_path: Path) -> None:
    cards = CardsInTest(tmp_path)
    async with asyncio.timeout(5):
        await wait_for_cards(cards, lambda _: None, wait_seconds=0.05)
    why = why_no_card(cards, "den")
    assert why is not None
    assert said(why) == (
        "The graphics card of den is still being tested, so its processor is used. Load the model again later to use "
        "the card."
    )


async def test_a_load_that_is_cancelled_does_not_wait_for_the_test(tmp_path: Path) -> None:
    cards, shown = CardsInTest(tmp_path, 1 << 30), asyncio.Event()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(wait_for_cards(cards, lambda _: shown.set()), name="wait")
        await shown.wait()
        waiting.cancel()
    assert waiting.cancelled()


async def test_without_a_card_nothing_is_told() -> None:
    shown: list[Progress] = []
    await wait_for_cards(PROCESSOR_ONLY, shown.append)
    assert shown == []
    assert why_no_card(PROCESSOR_ONLY, "den") is None


def test_a_failed_test_is_told_and_the_owner_s_choice_is_not(tmp_path: Path) -> None:
    cards = Cards(tmp_path)
    cards.unused = (
        UnusedCard("vulkan", Reason("card_test_crashed", {"why": "x"})),  # a back end without a card
        UnusedCard("Small", Reason("card_switched_off"), "1"),
        UnusedCard("Big", Reason("card_wrong", {"percent": 43.2}), "2"),
    )
    why = why_no_card(cards, "den")
    assert why is not None
    assert said(why).startswith("On den, the processor is used instead of Big. It gave a wrong answer")
    cards.unused = cards.unused[:2]
    assert why_no_card(cards, "den") is None
