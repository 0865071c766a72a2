"""A few rows of the fault matrix on real processes: `make faults` runs all of it, many times."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest

from app.client import NodeClient
from app.core.planner.placement_change import QUIET_S
from app.inference.pipeline.sequence import ALIKE_S
from app.node.placement.standby import LEAST_BETWEEN_SECONDS
from tests.faults import clocks
from tests.faults.cases import Case, run
from tests.faults.clocks import DAY_S, OURS, TEN_YEARS_S, THEIRS, Clocked, Jump
from tests.faults.household import HOST, N_TOKENS, ORDER, Heard, NeverStruck, together  # fmt: skip
from tests.faults.outcome import Outcome
from tests.node.pool import BUSY

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="needs signals"),
    pytest.mark.timeout(240),
]

CASES = [
    Case("F1", "1st lender's worker", "prefill"),
    Case("F2", "1st lender's node", "middle", 2),
    Case("F2", "1st lender's worker", "middle", math.inf),
    Case("F7", "1st lender's worker", "middle", also="host's worker"),
    Case("F1", "1st lender's worker", "load"),
    Case("F1", "2nd lender's node", "middle"),
]
TOLD_SECONDS, STILL_SECONDS = 1.0, 5.0  # SAFETY.md 9, on a machine with nothing else to do
ORPHAN_SECONDS = 10.0
AHEAD_SECONDS = QUIET_S + LEAST_BETWEEN_SECONDS + 10.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clocked]:
    with pytest.MonkeyPatch.context() as patch:  # from the start: an undisturbed one is heard then
        patch.setattr(clocks, "LONG", ORDER | {"max_tokens": 200})
        with together(tmp_path_factory.mktemp("faults"), Clocked) as made:
            assert isinstance(made, Clocked)
            yield made


async def test_answers_are_finished_whatever_is_lost(home: Clocked) -> None:
    """All tokens of the undisturbed answer, in their order, none twice; told in time."""
    for case in CASES:
        outcome = await struck(home, case)
        assert outcome.passed, f"{case}: {outcome.why}"
        if case.phase != "prefill":  # then it may not be in the pipeline yet
            assert (outcome.recoveries == 0) == (case.seconds == 2 or case.phase == "load"), case
        if outcome.recoveries:
            within = STILL_SECONDS if case.seconds else TOLD_SECONDS
            assert outcome.said_s is not None, case
            assert outcome.said_s < within * BUSY, case


async def struck(home: Clocked, case: Case) -> Outcome:
    """Once more where nobody was: other lenders may be given the layers than had them before."""
    while True:
        with suppress(NeverStruck):
            return await run(home, case)


async def test_nobody_notices_that_a_clock_is_set(home: Clocked) -> None:
    """F8. The clocks since the start are years apart all the time, where that can be had."""
    for case in (Jump("back", THEIRS, -TEN_YEARS_S), Jump("ahead", OURS, DAY_S)):
        outcome = await clocks.run(home, case)
        assert outcome.passed, f"{case}: {outcome.why}"


async def stays_loaded(host: NodeClient) -> None:
    """Wait until the model is stably loaded: a machine that left freed its memory, and the others keep theirs."""
    for _ in range(15):
        loaded = (await host.get("/status"))["loaded"]
        assert loaded["state"] == "ready", loaded["reason"]
        await asyncio.sleep(0.1)


async def test_a_lender_that_pauses_is_left_without_a_lost_word(home: Clocked) -> None:
    await home.forget()  # who failed in the tests before, too
    lender = home.nodes[(await home.whole())[0]]
    pausing: list[asyncio.Future[dict[str, Any]]] = []

    def pause() -> None:
        loop = asyncio.get_running_loop()
        pausing.append(loop.run_in_executor(None, lender.control, "POST", "/lending/pause"))

    def has_begun(heard: Heard) -> bool:
        return len(heard.ids) >= 5

    long = ORDER | {"max_tokens": 500}
    try:
        async with home.client() as host:
            heard = await home.ask(pause, has_begun, long)
            await asyncio.gather(*pausing)
            assert heard.ids[:N_TOKENS] == home.expected
            assert len(heard.ids) == long["max_tokens"]
            again = await home.ask(lambda: None, lambda _: False, long)
            paused_at = next(at for at, notice in heard.notices if notice["state"] == "lost")
            if paused_at - heard.deltas_at[0] < ALIKE_S:  # else later near ties may fall the other way
                assert heard.ids == again.ids
            assert heard.done is not None
            assert heard.done["recoveries"] == 1
            assert lender.name not in {stage["machine"] for stage in heard.done["placement"]}
            await stays_loaded(host)
    finally:  # the tests that follow want every lender
        await asyncio.to_thread(lender.control, "POST", "/lending/resume")
    texts = [notice["text"] for _, notice in heard.notices if notice["state"] != "leaving"]
    assert "took its memory back" in texts[0]
    assert "Other machines already hold its layers" in texts[1]  # so there was nothing to load


async def test_a_spare_machine_holds_what_may_be_lost(home: Clocked) -> None:
    """Once nobody has asked for a while. A lender that is ended says so first, and nothing is to be loaded."""
    await home.forget()  # who failed in the tests before, too
    lenders = await home.whole()
    async with home.client() as host, asyncio.timeout(AHEAD_SECONDS * BUSY):
        while True:
            ahead = (await host.get("/status"))["loaded"]["ahead"]
            if len(ahead) == len(lenders):
                break
            await asyncio.sleep(0.2)
    leaver = home.nodes[lenders[0]]
    heard = await home.ask(leaver.process.terminate, lambda heard: len(heard.ids) >= 5, ORDER | {"max_tokens": 500})
    async with home.client() as host:
        await stays_loaded(host)
    assert heard.ids[:N_TOKENS] == home.expected
    assert heard.done is not None
    assert leaver.name not in {stage["machine"] for stage in heard.done["placement"]}
    texts = [notice["text"] for _, notice in heard.notices if notice["state"] != "leaving"]
    assert texts[0] == f"{leaver.name} took its memory back. Poolhouse is closing on that machine."
    assert texts[1].startswith(f"{leaver.name} is leaving. Other machines already hold its layers.")
    assert await asyncio.to_thread(leaver.process.wait, 60) == 0


async def test_a_host_that_is_killed_leaves_nothing_at_work(home: Clocked) -> None:
    lenders = await home.whole()
    heard = await home.ask(home.nodes[HOST].process.kill, lambda heard: len(heard.ids) >= 5)
    assert heard.struck_at, heard.error
    killed_at = time.monotonic()
    home.nodes[HOST].process.wait()
    workers = [worker for name in lenders for worker in home.nodes[name].workers()]
    async with asyncio.timeout(ORPHAN_SECONDS * BUSY):
        before_s = -math.inf
        while (now_s := _busy(workers)) - before_s >= 0.2:
            before_s = now_s
            await asyncio.sleep(1.0)
    await asyncio.to_thread(home.start, HOST)  # a new start: what it held is given back at once
    _, left = await asyncio.to_thread(psutil.wait_procs, workers, ORPHAN_SECONDS * BUSY)
    assert not left, f"after {time.monotonic() - killed_at:.1f} s"


def _busy(workers: list[psutil.Process]) -> float:
    """Seconds of processor time of those that live."""
    spent_s = 0.0
    for worker in workers:
        with suppress(psutil.Error):
            times = worker.cpu_times()
            spent_s += times.user + times.system
    return spent_s
