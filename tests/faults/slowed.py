"""Machines that become slow, as a hot one or one whose owner plays does: nobody is dead of that (Linux, root)."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil

from app.core.planner.placement_change import QUIET_S, SETTLED_S, SLOWER
from app.node.placement.standby import LEAST_BETWEEN_SECONDS, LOOK_SECONDS
from bench import quota
from tests.faults.cases import END_SECONDS, judged
from tests.faults.household import Heard, Household, NeverStruck, machines
from tests.faults.outcome import Kind, Outcome, quantile

PHASE = "slowed"
AFTER = 8  # tokens
PERIOD_US = 100_000  # of a quota; the least of one is a millisecond
GAP_BAR_S = 1.0  # between two tokens: slow, and not stopped
MOVED_BAR_S = SETTLED_S + QUIET_S + LEAST_BETWEEN_SECONDS + 10.0  # from the end of the answer
BESTS = 2.0  # looks at how fast it was at its best


@dataclass(frozen=True, slots=True)
class Slowed:
    """`share` of a processor is left to the first lender: to its worker, and to its node with it."""

    name: str
    share: float
    node_too: bool = False
    moves: bool = False  # and then others take over what it holds

    @property
    def kind(self) -> Kind:
        whom = "1st lender's node and worker" if self.node_too else "1st lender's worker"
        return "F2", f"{self.name}, {whom}", PHASE


def kinds() -> list[Slowed]:
    return [
        Slowed("slowed to a fiftieth, and replaced", 0.02, moves=True),
        Slowed("slowed to a tenth", 0.1, node_too=True),
        Slowed("slowed to a third", 1 / 3, node_too=True),
    ]


def can_be() -> bool:
    try:
        quota.root()
    except quota.NoQuota:
        return False
    return True


async def run(home: Household, case: Slowed) -> Outcome:
    """Check that it answers at its pace to the last token, and that a much slower machine is replaced when idle."""
    name = (await home.whole())[0]
    if case.moves:
        name = (await home.load_measured())[0]  # what is not forecast is not compared
    await home.ask(lambda: None, lambda _: False)  # how fast it is else
    await asyncio.sleep(BESTS * LOOK_SECONDS)
    slow = [home.worker(name)]
    if case.node_too:
        slow.append(psutil.Process(home.nodes[name].process.pid))
    moved_s, why = None, ""
    with quota.quotas([case.share], PERIOD_US) as (group,):
        try:
            async with asyncio.timeout(END_SECONDS):
                heard = await home.ask(lambda: _put(group, slow), lambda heard: len(heard.ids) >= AFTER)
            why = await home.lost(heard)
            if case.moves and not why:
                moved_s = await _moved(home, name)
                if not moved_s and not _became_slow(home, heard):
                    raise NeverStruck
                why = "" if moved_s else f"it holds its layers still after {MOVED_BAR_S:g} s"
                again = await home.ask(lambda: None, lambda _: False)
                why = why or ("other tokens afterwards" if again.ids != home.expected else "")
        except TimeoutError:
            return Outcome(*case.kind, False, f"no end within {END_SECONDS:g} s", in_time=False)
        finally:
            _put(_own(group.parent), [process for process in slow if process.is_running()])
    if case.moves:
        await home.forget()  # who was slow would be left out for minutes
    return _judged(home, case, heard, moved_s, why)


def _judged(home: Household, case: Slowed, heard: Heard, moved_s: float | None, why: str) -> Outcome:
    gaps = [b - a for a, b in pairwise(heard.deltas_at) if a > heard.struck_at]
    outcome = judged(case.kind, (0.0, GAP_BAR_S), heard, home.expected, why)
    facts = {
        "gap_p50_s": quantile(gaps, 0.5) or 0.0, "gap_worst_s": max(gaps, default=0.0),
        "usual_gap_p95_s": home.usual_gap_s,
    }  # fmt: skip
    facts |= {} if moved_s is None else {"moved_s": moved_s}
    in_time = outcome.passed and facts["gap_worst_s"] <= GAP_BAR_S
    return Outcome(*case.kind, outcome.passed, outcome.why, None, None, outcome.recoveries, in_time, facts)


def _became_slow(home: Household, heard: Heard) -> bool:
    """Compare with the undisturbed answer: if the whole computer is slow, no machine stands out."""
    gaps = [b - a for a, b in pairwise(heard.deltas_at) if a > heard.struck_at]
    return (quantile(gaps, 0.5) or 0.0) >= SLOWER * home.usual_gap_s


def _put(group: Path, processes: list[psutil.Process]) -> None:
    for process in processes:
        (group / "cgroup.procs").write_text(str(process.pid))


def _own(base: Path) -> Path:
    """The group that we and all that we start are in."""
    for line in Path("/proc/self/cgroup").read_text("utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(",") or (base == quota.V2 and not controllers):
            return base / path.lstrip("/")
    return base


async def _moved(home: Household, name: str) -> float | None:
    """Return the seconds until this machine holds no layers of the answering model."""
    began = time.monotonic()
    async with home.client() as host:
        while time.monotonic() - began < MOVED_BAR_S:
            loaded = (await host.get("/status"))["loaded"] or {}
            if loaded.get("state") == "ready" and name not in machines(loaded):
                return time.monotonic() - began
            await asyncio.sleep(0.5)
    return None
