"""Tests of requests that wait for a slot while the stages of the others are lost."""

from __future__ import annotations

import asyncio

from app.core.errors import StageLost
from tests.inference.pool import pool, request, shape
from tests.inference.test_recovery import SLOW, hear, kill, posix
from tests.simulation.truth import undisturbed


@posix
async def test_who_waits_for_a_slot_meanwhile_is_not_ended_for_what_others_lost() -> None:
    """Nothing of it was rebuilt: that was said of an answer that had not begun."""
    last = request("y", 5)
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True, form=shape(slots=1)) as built:
        deeds = {n * 10: kill(built, "lender") for n in range(1, 5)}
        first = asyncio.gather(hear(built.pipeline, request("x", 90), deeds), return_exceptions=True)
        await asyncio.sleep(0)
        ids, notices, _ = await hear(built.pipeline, last)
        [reports] = await first
    assert isinstance(reports, StageLost)
    assert reports.reason.code == "recovery_too_often"
    assert ids == undisturbed(last, shape())
    assert notices
