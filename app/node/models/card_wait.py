"""The wait of a load for the test of this computer's graphics cards, before which only the processor computes."""

from __future__ import annotations

import asyncio

from app.api.plans import Progress
from app.machine.hardware.cards import ComputingCard
from app.node.control.json_bodies import Report

# In a card's first test, its driver compiles code. After this time, the processor is better than a longer wait.
WAIT_SECONDS = 120.0
SHOWN_AFTER_SECONDS = 0.3


async def wait_for_cards(graphics: ComputingCard, report: Report, wait_seconds: float = WAIT_SECONDS) -> None:
    """Wait until it is known whether a card computes, but not forever."""
    if await _is_tested(graphics, SHOWN_AFTER_SECONDS):
        return
    report(Progress("testing_card", None, 0, 1, "steps"))
    if await _is_tested(graphics, wait_seconds):
        report(Progress("testing_card", None, 1, 1, "steps"))


async def _is_tested(graphics: ComputingCard, within_seconds: float) -> bool:
    try:
        async with asyncio.timeout(within_seconds):
            await graphics.tested()
    except TimeoutError:
        return False
    return True
