"""F8 on real nodes: somebody sets the clocks of a machine while it answers; and clocks that never agreed."""

from __future__ import annotations

import asyncio
import json
import math
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from tests.faults.cases import END_SECONDS, judged
from tests.faults.clocked import has_time_namespaces
from tests.faults.household import HOST, ORDER, Heard, Household, kill
from tests.faults.outcome import Outcome
from tests.node.pool import node

HOUR_S, DAY_S, TEN_YEARS_S = 3600.0, 86_400.0, 3.2e8
AHEAD_S = {"attic": 320_000_000, "kitchen": 86_400}  # as if started ten years, and a day, before
LONG = ORDER | {"max_tokens": 600}  # seconds: what looks at a clock now and then does so meanwhile
TAKEN_SECONDS = 30.0  # until a node has its new time
NOBODY_NOTICES, AS_ASLEEP, KILLED = (1.0, 1.0), (5.0, 15.0), (1.0, 10.0)  # bars: told, goes on
OURS, THEIRS, ALL = "host's node", "1st lender's node", "all lenders"


@dataclass(frozen=True, slots=True)
class Jump:
    """The change of clocks, and whose. With neither, they differ all the time and a worker is killed."""

    name: str
    whom: str
    wall_s: float = 0.0
    since_s: float = 0.0  # of the clock that counts since the start, which nobody can set

    @property
    def kind(self) -> tuple[str, str, str]:
        return "F8", f"{self.name}, {self.whom}", "middle"

    @property
    def bars(self) -> tuple[float, float]:
        if self.wall_s:
            return NOBODY_NOTICES
        return AS_ASLEEP if self.since_s else KILLED


def jumps() -> list[Jump]:
    walls = {
        "wall clock a day ahead": DAY_S, "wall clock a day back": -DAY_S,
        "wall clock ten years ahead": TEN_YEARS_S, "wall clock ten years back": -TEN_YEARS_S,
    }  # fmt: skip
    results = [Jump(name, whom, wall_s) for name, wall_s in walls.items() for whom in (OURS, THEIRS)]
    asleep = "an hour at once, as after a sleep that the clock counts"
    results += [Jump(asleep, whom, since_s=HOUR_S) for whom in (OURS, THEIRS)]
    return [*results, Jump("clocks since start a day and ten years apart, and a death", ALL)]


def can_be(case: Jump) -> bool:
    """Return whether the case can be run on this computer."""
    return case.whom != ALL or has_time_namespaces()


@dataclass
class Clocked(Household):
    """Its nodes' clocks can be set; since when their machines are on differs by years, where that can be had."""

    slept_s: dict[str, float] = field(default_factory=dict)
    long: list[int] = field(default_factory=list)  # the undisturbed long answer

    async def whole(self) -> list[str]:
        lenders = await super().whole()
        if not self.long:
            heard = await self.ask(lambda: None, lambda _: False, LONG)
            assert heard.done is not None, heard.error
            self.long = heard.ids
        return lenders

    def start(self, name: str) -> None:
        self.slept_s.pop(name, None)
        ahead_s = AHEAD_S.get(name, 0) if has_time_namespaces() else 0
        launch = (sys.executable, "-m", "tests.faults.clocked", str(self._file(name)), str(ahead_s), "--")  # fmt: skip
        made = self.stack.enter_context(node(self.folder / name, name, launch=launch))
        self.nodes[name] = replace(made, launch=())  # its control port is reached from here

    def turn(self, name: str, wall_s: float, since_s: float = 0.0) -> None:
        """Its clock on the wall is now so far off, its other one so much further on. It has both when this returns."""
        self.slept_s[name] = self.slept_s.get(name, 0.0) + since_s
        file, late = self._file(name), time.monotonic() + TAKEN_SECONDS
        file.write_text(json.dumps({"wall_s": wall_s, "since_s": self.slept_s[name]}), "utf-8")
        self.nodes[name].process.send_signal(signal.SIGUSR1)
        while file.exists():
            assert time.monotonic() < late, f"{name} does not set its clocks"
            time.sleep(0.001)

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.clock"


async def run(home: Clocked, case: Jump) -> Outcome:
    lenders = await home.whole()
    name = HOST if case.whom == OURS else lenders[0]
    after = random.randrange(len(home.long) // 8, len(home.long) // 4)
    strike: Callable[[], None]
    if case.whom == ALL:
        strike = lambda: kill(home.worker(name))  # noqa: E731
    else:
        strike = lambda: home.turn(name, case.wall_s, case.since_s)  # noqa: E731
    try:
        async with asyncio.timeout(END_SECONDS):
            heard = await home.ask(strike, lambda heard: len(heard.ids) >= after, LONG)
    except TimeoutError:
        return Outcome(*case.kind, False, f"no end within {END_SECONDS:g} s", in_time=False)
    why = ""
    if case.wall_s:
        why = await home.lost(heard) or ("it was noticed" if heard.notices else "")
        await asyncio.to_thread(home.turn, name, 0.0)  # back at rest: that is one more
    outcome = judged(case.kind, case.bars, heard, home.long, why)
    return outcome if outcome.recoveries else _waited(outcome, case, heard)


def _waited(outcome: Outcome, case: Jump, heard: Heard) -> Outcome:
    """Return the outcome with the longest wait for any token, if nothing was lost."""
    times = [heard.struck_at, *(at for at in heard.deltas_at if at > heard.struck_at)]
    longest_s = max((b - a for a, b in pairwise(times)), default=math.inf)
    in_time = outcome.passed and longest_s <= case.bars[1]
    return replace(outcome, next_token_s=longest_s, in_time=in_time)
