"""The host's node is killed and started again: its lenders stop, give back what it held, and it answers as before."""

from __future__ import annotations

import asyncio
import random
import time

import psutil

from tests.faults.cases import wrong
from tests.faults.household import HOST, N_TOKENS, Household
from tests.faults.outcome import Outcome

KIND = ("F6", "kill -9, host's node, then started again", "middle")
ORPHAN_SECONDS = 10.0
QUIET_SECONDS = 0.5  # between two looks at what a worker has computed
BUSY_SHARE = 0.1  # of a processor: less is no computing
TOLD_SECONDS, ANSWERED_SECONDS = 5.0, 15.0


async def run(home: Household) -> Outcome:
    """One such death. The conversation is the reader's: it asks again, and hears the same."""
    lenders = await home.whole()
    after = random.randrange(5, N_TOKENS // 2)
    node = home.nodes[HOST]
    workers = [*node.workers(), *(worker for name in lenders for worker in home.nodes[name].workers())]
    heard = await home.ask(node.process.kill, lambda heard: len(heard.ids) >= after)
    told_s = time.monotonic() - heard.struck_at
    node.process.wait()
    why = "" if heard.error else "its reader was not told"
    if heard.ids != home.expected[: len(heard.ids)]:
        why = "other tokens before it died"
    quiet_s = await _quiet(workers, heard.struck_at)
    if quiet_s is None:
        why = f"somebody computes {ORPHAN_SECONDS:g} s later"
    again_at = time.monotonic()
    await asyncio.to_thread(home.start, HOST)
    _, left = await asyncio.to_thread(psutil.wait_procs, workers, ORPHAN_SECONDS)
    free_s = time.monotonic() - again_at
    if left:
        why = f"{len(left)} workers are left {ORPHAN_SECONDS:g} s after the new start"
    await home.whole()
    asked_at = time.monotonic()
    answer = await home.ask(lambda: None, lambda _: False)
    why = wrong(answer, home.expected) or why
    facts = {"quiet_s": quiet_s or ORPHAN_SECONDS, "free_s": free_s}
    in_time = told_s <= TOLD_SECONDS and time.monotonic() - asked_at <= ANSWERED_SECONDS and not why
    return Outcome(*KIND, not why, why, told_s, None, 0, in_time, facts)


async def _quiet(workers: list[psutil.Process], since: float) -> float | None:
    """Seconds from `since` until none of them computes; None: they still do."""
    before = computed_s(workers)
    while time.monotonic() - since < ORPHAN_SECONDS:
        began = time.monotonic()
        await asyncio.sleep(QUIET_SECONDS)
        now = computed_s(workers)
        if now - before < BUSY_SHARE * QUIET_SECONDS:
            return began - since
        before = now
    return None


def computed_s(processes: list[psutil.Process]) -> float:
    """Seconds of processor that they have used; nothing for those that are gone."""
    count = 0.0
    for process in processes:
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        count += used.user + used.system
    return count
