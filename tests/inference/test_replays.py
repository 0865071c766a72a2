"""Tests of the notices while an answer is replayed: the expected time, until its next token."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from app.core.recovery.recovery import Notice
from app.core.scheduler.routing import Pace
from tests.inference.pool import pool, request
from tests.inference.test_recovery import SOON_S, hear, kill, posix


@posix
async def test_all_is_well_when_the_next_token_is_there_and_not_before() -> None:
    """Computing it again may take longer than loading what was lost; how long, the steps before tell."""
    waiting: list[tuple[Notice | None, int]] = []  # what is told, and to how many
    async with pool(2, 4, 2, rebuilds=True) as built:
        pipeline = built.pipeline

        def strike() -> None:
            for stage in pipeline._stages:
                stage._meter.pace = Pace(0.1, 1.0)  # so much a row of a prompt, and a token
            kill(built, "lender")()

        pipeline.on_news = lambda: waiting.append((pipeline.news, len(pipeline._work.interrupted)))
        _, notices, _ = await hear(pipeline, request("x", 20), {9: strike})
        assert waiting[-1] == (None, 0)
        assert all(notice for notice, n_waiting in waiting if n_waiting)
        [rebuilding] = [notice for notice in notices if notice.state == "rebuilding"]
        assert rebuilding.seconds is not None
        assert 15 < rebuilding.seconds < 60  # nine tokens, of three stages each; the pace is learned on

        mended = asyncio.Event()  # and then its reader goes
        pipeline.on_recovered = mended.set
        async with asyncio.timeout(SOON_S), asyncio.TaskGroup() as group:
            hearing = group.create_task(hear(pipeline, request("x", 90), {9: kill(built, "lender")}))
            await mended.wait()
            hearing.cancel()
            with suppress(asyncio.CancelledError):
                await hearing
            while pipeline.news is not None:  # noqa: ASYNC110  seen from outside
                await asyncio.sleep(0.01)
