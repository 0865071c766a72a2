"""A pool that has no slot left, for tests of what happens then."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp

from tests.gateway.conftest import Open
from tests.gateway.gate_calls import ASK, CHAT, control, rests
from tests.node.pool import Json

ENDLESS: Json = ASK | {"max_tokens": 3000, "logit_bias": {"2": -100}}  # no end of its own, for long
HOLDER = "hold-a-slot"


async def figures(http: aiohttp.ClientSession) -> dict[str, float]:
    """Return the present values of /metrics by name and labels."""
    async with http.get("/metrics") as answer:
        matches = re.findall(r"^poolhouse_(\S+) (\S+)$", await answer.text(), re.MULTILINE)
    return {name: float(value) for name, value in matches}


async def asked(http: aiohttp.ClientSession, body: Json, name: str) -> int:
    """The status of a request with this id, once it is answered whole."""
    async with http.post(CHAT, json=body, headers={"X-Request-Id": name}) as answer:
        await answer.read()
        return answer.status


@dataclass(frozen=True)
class Full:
    """Its slots are held by these."""

    api: Open
    http: aiohttp.ClientSession
    holding: list[asyncio.Task[int]]
    since: int

    async def until(self, so: Callable[[], Awaitable[bool]]) -> None:
        """Wait for the condition, or until one of the requests that occupy the slots ends."""
        while not (await so() or any(task.done() for task in self.holding)):  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.01)

    async def ended(self) -> list[Json]:
        """Answers since then, in the order of their ends."""
        answers: list[Json] = (await control(self.api, "GET", "/journal"))["answers"]
        return [answer for answer in answers if answer["number"] > self.since]

    async def was_full(self) -> bool:
        """All the time: where an answer of those comes to its end, however long it is, nothing was tried."""
        theirs = [item for item in await self.ended() if item["request"] == HOLDER]
        return all(their["end"] == "stopped" for their in theirs)


@asynccontextmanager
async def full(api: Open, http: aiohttp.ClientSession) -> AsyncGenerator[Full, None]:
    """One after another is asked until one must wait; that one leaves."""
    await asked(http, ASK, "loads-the-model")
    await rests(api)
    pool = Full(api, http, [], (await control(api, "GET", "/journal"))["last"])
    now: dict[str, float] = {}

    async def all_here() -> bool:
        now.update(await figures(http))
        return now["queue_running"] + now["queue_waiting"] >= len(pool.holding)

    async def nobody_waits() -> bool:
        return not (await figures(http))["queue_waiting"]

    async with asyncio.TaskGroup() as group:
        try:
            while not now.get("queue_waiting"):
                task = group.create_task(asked(http, ENDLESS, HOLDER), name=HOLDER)
                pool.holding.append(task)
                await pool.until(all_here)
            pool.holding.pop().cancel()
            await pool.until(nobody_waits)
            yield pool
        finally:
            for item in pool.holding:
                item.cancel()
    await rests(api)
