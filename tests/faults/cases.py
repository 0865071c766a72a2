"""The faults: what is done to whom in which phase of an answer, and what must come of it."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil

from tests.faults.household import HOST, N_TOKENS, Heard, Household, kill, pause

Json = dict[str, Any]
PHASES = ("load", "prefill", "first token", "middle", "last token")
VICTIMS = ("host's worker", "1st lender's worker", "2nd lender's worker",
           "1st lender's node", "2nd lender's node")  # fmt: skip
STOPPED = ("host's worker", "1st lender's worker", "1st lender's node")


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of fault. `seconds`: how long a process stands still; None: it is killed."""

    row: str  # of SAFETY.md 9
    victim: str
    phase: str
    seconds: float | None = None
    also: str = ""  # a second victim
    second: str = "at once"  # or "while it is rebuilt"

    @property
    def name(self) -> str:
        if self.seconds is None:
            deed = "kill -9"
        elif math.isinf(self.seconds):
            deed = "stopped for ever"
        else:
            deed = f"stopped for {self.seconds:g} s"
        whom = f"{self.victim} and {self.also} {self.second}" if self.also else self.victim
        return f"{deed}, {whom}"


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one run. Times in seconds from the fault; NaN where nothing was to be seen."""

    case: Case
    passed: bool
    why: str  # if not
    said_s: float  # until the reader was told
    next_token_s: float
    recoveries: int


def killed() -> list[Case]:
    return [Case("F1", victim, phase) for victim in VICTIMS for phase in PHASES]


def stopped(seconds: float) -> list[Case]:
    return [Case("F2", victim, "middle", seconds) for victim in STOPPED]


def twice() -> list[Case]:
    first, second = "1st lender's node", "2nd lender's node"
    return [
        Case("F7", first, "middle", also=second),
        Case("F7", first, "middle", also=second, second="while it is rebuilt"),
        Case("F7", "1st lender's worker", "middle", also="host's worker"),
    ]


async def run(home: Household, case: Case) -> Result:
    lenders = await home.whole()
    again: list[Callable[[], None]] = []

    def strike() -> None:
        _strike(_process(home, lenders, case.victim), case.seconds)
        if case.also and case.second == "at once":
            _strike(_process(home, lenders, case.also), case.seconds)
        elif case.also:
            again.append(lambda: _strike(_process(home, lenders, case.also), case.seconds))

    def when(heard: Heard) -> bool:
        if again and heard.notices and heard.notices[-1][1]["state"] == "rebuilding":
            again.pop()()
        return _is_time(case, heard)

    try:
        async with asyncio.timeout(90):
            if case.phase == "load":
                heard = await home.load_anew(strike)
            else:
                heard = await home.ask(strike, when)
    except TimeoutError:
        return Result(case, False, "no end within 90 s", math.nan, math.nan, 0)
    return _judged(home, case, heard)


def _process(home: Household, lenders: list[str], victim: str) -> psutil.Process:
    name = HOST if victim.startswith("host") else lenders[0 if victim.startswith("1st") else 1]
    if victim.endswith("node"):
        return psutil.Process(home.nodes[name].process.pid)
    return home.worker(name)


def _strike(process: psutil.Process, seconds: float | None) -> None:
    kill(process) if seconds is None else pause(process, seconds)


def _is_time(case: Case, heard: Heard) -> bool:
    match case.phase:
        case "prefill":
            return True  # asked just now: the prompt is read
        case "first token":
            return len(heard.ids) >= 1
        case "middle":
            return len(heard.ids) >= random.randrange(N_TOKENS // 4, 3 * N_TOKENS // 4)
        case _:
            return len(heard.ids) >= N_TOKENS - 2


def _judged(home: Household, case: Case, heard: Heard) -> Result:
    said = next((at for at, _ in heard.notices), math.nan)
    after = [at for at in heard.deltas_at if at > heard.struck_at]
    gaps = [b - a for a, b in zip([heard.struck_at, *after], after, strict=False)]
    if case.phase == "load":
        gaps = gaps[:1]
    longest = max(range(len(gaps)), key=gaps.__getitem__) if gaps else -1
    next_token = after[longest] if gaps else math.nan  # the first after the gap
    why = ""
    if heard.error:
        why = f"ended with {heard.error}"
    elif heard.done is None:
        why = "no end"
    elif heard.ids != home.expected or heard.done["token_ids"] != home.expected:
        same = [a == b for a, b in zip(heard.ids, home.expected, strict=False)]
        why = f"{len(heard.ids)} tokens, other ones from {([*same, False]).index(False)} on"
    elif not heard.struck_at:
        why = "the answer was over before the fault"
    return Result(
        case, not why, why,
        said - heard.struck_at, next_token - heard.struck_at,
        int((heard.done or {}).get("recoveries") or 0),
    )  # fmt: skip
