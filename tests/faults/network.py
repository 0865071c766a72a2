"""The faults of the network under a running answer: silence, loss, jitter, spikes, slow cables, another address."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from testbed.fault_link import Faults
from tests.faults.cables import CLEAN, Cabled
from tests.faults.cases import END_SECONDS, judged
from tests.faults.household import LENDERS, N_TOKENS, Heard
from tests.faults.outcome import Outcome, quantile

Deed = Literal["", "moved", "changed over", "tunnelled", "pulled"]
MS, MBIT = 1e-3, 1e6
RESUMED_WITHIN = 4.75  # seconds of silence that no machine is given up for
SPIKE_SECONDS = 0.05  # what is sent in such a moment arrives late, and all behind it
BACK_SECONDS = 30.0
FOUND_AGAIN_S = 10.0  # a machine whose addresses changed, or went and came
SEEN_SECONDS = 4.0  # until a second interface is announced
TUNNEL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """One kind of it. `seconds`: after which it is over; endless: when the answer is."""

    row: str
    name: str
    faults: Faults
    whom: str = "both lenders"
    seconds: float = math.inf
    spikes: bool = False  # the faults come in two short moments
    deed: Deed = ""  # what happens to its addresses
    may_lose: bool = False  # a machine may be given up

    @property
    def kind(self) -> tuple[str, str, str]:
        return self.row, f"{self.name}, {self.whom}", "all of it" if self.is_lasting else "middle"

    @property
    def is_lasting(self) -> bool:
        return math.isinf(self.seconds) and not self.deed

    @property
    def bars(self) -> tuple[float, float]:
        """Seconds until told, and until it goes on."""
        if self.row == "F9":
            return FOUND_AGAIN_S, FOUND_AGAIN_S
        if self.row == "F3":
            later_s = FOUND_AGAIN_S if self.deed else 1.0
            return 5.0, self.seconds + later_s if self.seconds < RESUMED_WITHIN else 15.0
        return math.inf, math.inf  # it never quite stops: the gaps count


def silences() -> list[Trouble]:
    dead = Faults(partition=True)
    result = []
    for seconds in (0.5, 2.0, 5.0, 10.0, 30.0, 60.0):
        for whom in ("1st lender", "both lenders"):
            lost, name = seconds >= RESUMED_WITHIN, f"silent for {seconds:g} s"
            result.append(Trouble("F3", name, dead, whom, seconds, may_lose=lost))
    for seconds in (2.0, 10.0):
        lost, name = seconds >= RESUMED_WITHIN, f"cable out for {seconds:g} s"
        result.append(Trouble("F3", name, CLEAN, "1st lender", seconds, deed="pulled", may_lose=lost))
    return result


def bad_lines() -> list[Trouble]:
    kinds = {
        "1 % of packets lost": Faults(0.002, loss=0.01),
        "5 % of packets lost": Faults(0.002, loss=0.05),
        "10 % of packets lost": Faults(0.002, loss=0.1),
        "5 % of packets twice": Faults(0.002, duplicate=0.05),
        "5 % of packets out of order": Faults(0.002, reorder=0.05),
        "3 ± 5 ms and 1 % lost": Faults(0.003, jitter_s=0.005, loss=0.01),
    }
    troubles = [Trouble("F4", name, faults, may_lose=faults.loss > 0.05) for name, faults in kinds.items()]
    for seconds in (0.2, 2.0):
        name = f"two spikes of {seconds:g} s"
        troubles.append(Trouble("F4", name, Faults(seconds), spikes=True))
    return troubles


def slow_lines() -> list[Trouble]:
    rates = (10, 30, 50, 100)
    return [Trouble("F5", f"{rate} Mbit/s", Faults(MS, rate_bits_per_s=rate * MBIT)) for rate in rates]


def moved() -> list[Trouble]:
    kinds: dict[str, Deed] = {
        "another address": "moved",
        "a second interface, then the first goes down": "changed over",
        "a VPN comes and goes": "tunnelled",
    }
    return [Trouble("F9", name, CLEAN, "1st lender", deed=deed) for name, deed in kinds.items()]


async def run(home: Cabled, case: Trouble) -> Outcome:
    lenders = await home.whole()
    names = lenders[:1] if case.whom == "1st lender" else lenders
    after = 0 if case.is_lasting else random.randrange(N_TOKENS // 8, N_TOKENS // 2)
    healed = asyncio.Event()

    def heal() -> None:
        if case.deed == "pulled":
            home.put_in(names[0])
        home.use(CLEAN, names)
        healed.set()

    def strike() -> None:
        _strike(home, case, names, heal)

    if case.deed == "changed over":
        home.plug_in(names[0])
        await asyncio.sleep(SEEN_SECONDS)
    why = ""
    try:
        async with asyncio.timeout(END_SECONDS):
            heard = await home.ask(strike, lambda heard: len(heard.ids) >= after)
        moves = case.deed in ("moved", "changed over")  # such a one is called anew, and away for that moment
        why = "" if case.may_lose else await home.lost(heard, may_be_away=moves)
        if case.deed == "tunnelled":
            await asyncio.sleep(TUNNEL_SECONDS)
            why = why or ("it was noticed" if heard.notices else "")
        if not math.isinf(case.seconds) and heard.struck_at:
            await healed.wait()  # what was sent into the silence comes only now
    except TimeoutError:
        return Outcome(*case.kind, False, f"no end within {END_SECONDS:g} s", in_time=False)
    finally:  # whatever became of it: the next row begins with a network that is whole
        if case.deed == "changed over":
            home.put_back(names[0])
        heal()
    back_s = await _back(home)
    if back_s is None:
        why = why or f"not everybody is back after {BACK_SECONDS:g} s"
    outcome = judged(case.kind, case.bars, heard, home.expected, why)
    return _with_gaps(outcome, case, heard, home.usual_gap_s, back_s)


def _strike(home: Cabled, case: Trouble, names: list[str], heal: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    match case.deed:
        case "moved":
            home.move(names[0], random.randrange(10, 250))
        case "changed over":
            home.pull_first(names[0])
        case "pulled":
            home.pull_first(names[0])
            loop.call_later(case.seconds, heal)
        case "tunnelled":
            home.tunnel(names[0], up=True)
            loop.call_later(TUNNEL_SECONDS / 2, lambda: home.tunnel(names[0], up=False))
        case _:
            _disturb(home, case, names, heal)


def _disturb(home: Cabled, case: Trouble, names: list[str], heal: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    home.use(case.faults, names)
    if case.spikes:
        for again_s in (0.0, case.faults.delay_s + 0.3):
            loop.call_later(again_s, home.use, case.faults, names)
            loop.call_later(again_s + SPIKE_SECONDS, home.use, CLEAN, names)
    elif not math.isinf(case.seconds):
        loop.call_later(case.seconds, heal)


def _with_gaps(outcome: Outcome, case: Trouble, heard: Heard, usual_s: float, back_s: float | None) -> Outcome:
    """Return the outcome with the gaps between tokens, and the time until all lenders were back."""
    times = heard.deltas_at
    gap_s = quantile((b - a for a, b in pairwise(times)), 0.95) or 0.0
    facts = {"gap_p95_s": gap_s, "usual_gap_p95_s": usual_s}
    if back_s is not None:
        facts["back_s"] = back_s
    in_time = outcome.in_time and (case.row != "F4" or gap_s <= 3 * usual_s + 0.25)
    return Outcome(
        *case.kind, outcome.passed, outcome.why, outcome.said_s, outcome.next_token_s, outcome.recoveries,
        in_time, facts,
    )  # fmt: skip


async def _back(home: Cabled) -> float | None:
    """Return the seconds until all lenders are back, each over its own cable.

    Otherwise the next run would notice other losses, such as the second interface.
    """
    began = time.monotonic()
    async with home.client() as host:
        while time.monotonic() - began < BACK_SECONDS:
            status = await host.get("/status")
            online = [m for m in status["machines"].values() if m["online"]]
            by = {m["name"]: m["address"] or "" for m in online}
            if all(by.get(name, "").startswith(f"{home.net(name)}.") for name in LENDERS):
                return time.monotonic() - began
            await asyncio.sleep(0.05)
    return None
