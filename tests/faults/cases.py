"""The faults of processes: what is done to whom in which phase of an answer, and what must come of it."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from tests.faults.household import HOST, N_TOKENS, Heard, Household, kill, pause
from tests.faults.outcome import Outcome

PHASES = ("load", "prefill", "first token", "middle", "last token")
VICTIMS = ("host's worker", "1st lender's worker", "2nd lender's worker",
           "1st lender's node", "2nd lender's node")  # fmt: skip
STOPPED = ("host's worker", "1st lender's worker", "1st lender's node")
END_SECONDS = 90.0
SHORT_SECONDS = 2.0  # nobody who stands still for so long is given up


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

    @property
    def kind(self) -> tuple[str, str, str]:
        return self.row, self.name, self.phase

    @property
    def bars(self) -> tuple[float, float]:
        """Seconds until the reader is told, and until the answer goes on."""
        if self.also:
            return 5.0, 15.0
        if self.seconds is None:
            return 1.0, 10.0
        return 5.0, 5.0 + 10.0 if math.isinf(self.seconds) else self.seconds + 1.0


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


async def run(home: Household, case: Case) -> Outcome:
    lenders = await home.whole()
    again: list[Callable[[], None]] = []
    after = random.randrange(N_TOKENS // 4, 3 * N_TOKENS // 4)

    def strike() -> None:
        _strike(_process(home, lenders, case.victim), case.seconds)
        if case.also and case.second == "at once":
            _strike(_process(home, lenders, case.also), case.seconds)
        elif case.also:
            again.append(lambda: _strike(_process(home, lenders, case.also), case.seconds))

    def when(heard: Heard) -> bool:
        if again and any(notice["state"] == "rebuilding" for _, notice in heard.notices):
            again.pop()()
        return _is_time(case.phase, heard, after)

    try:
        async with asyncio.timeout(END_SECONDS):
            if case.phase == "load":
                heard = await home.load_anew(strike)
            else:
                heard = await home.ask(strike, when)
    except TimeoutError:
        return Outcome(*case.kind, False, f"no end within {END_SECONDS:g} s", in_time=False)
    why = "the second one was never killed" if again else ""
    if case.seconds == SHORT_SECONDS and (heard.done or {}).get("recoveries"):
        why = "it was given up, and would have gone on"
    return judged(case.kind, case.bars, heard, home.expected, why)


def _process(home: Household, lenders: list[str], victim: str) -> psutil.Process:
    name = HOST if victim.startswith("host") else lenders[0 if victim.startswith("1st") else 1]
    if victim.endswith("node"):
        return psutil.Process(home.nodes[name].process.pid)
    return home.worker(name)


def _strike(process: psutil.Process, seconds: float | None) -> None:
    kill(process) if seconds is None else pause(process, seconds)


def _is_time(phase: str, heard: Heard, middle: int) -> bool:
    match phase:
        case "prefill":
            return True  # asked just now: the prompt is read
        case "first token":
            return len(heard.ids) >= 1
        case "middle":
            return len(heard.ids) >= middle
        case _:
            return len(heard.ids) >= N_TOKENS - 2


def judged(kind: tuple[str, str, str], bars: tuple[float, float], heard: Heard, right: list[int], why: str) -> Outcome:
    """The tokens of the undisturbed answer and no others; told and gone on in time."""
    values = [at - heard.struck_at for at, _ in heard.notices if at > heard.struck_at]
    said = min(values, default=None)
    after = [at for at in heard.deltas_at if at > heard.struck_at]
    gaps = [b - a for a, b in zip([heard.struck_at, *after], after, strict=False)]
    if kind[2] == "load":
        gaps = gaps[:1]
    longest = max(range(len(gaps)), key=gaps.__getitem__) if gaps else -1
    next_token = after[longest] - heard.struck_at if gaps else None  # the first after the gap
    why = wrong(heard, right) or why
    if not why and not heard.struck_at:
        why = "the answer was over before the fault"
    in_time = (said or 0.0) <= bars[0] and (next_token or 0.0) <= bars[1]
    recoveries = int((heard.done or {}).get("recoveries") or 0)
    return Outcome(*kind, not why, why, said, next_token, recoveries, in_time and not why)


def wrong(heard: Heard, right: list[int]) -> str:
    """Return what is wrong with an answer, or "" if it is complete."""
    if heard.error:
        return f"ended with {heard.error}"
    if heard.done is None:
        return "no end"
    if heard.ids != right or heard.done["token_ids"] != right:
        same = [a == b for a, b in zip(heard.ids, right, strict=False)]
        return f"{len(heard.ids)} tokens, other ones from {([*same, False]).index(False)} on"
    return ""
