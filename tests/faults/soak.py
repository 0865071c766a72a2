"""F13: one random fault after another for hours, and whether the host's node grows under them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence

import psutil

from tests.faults import cases
from tests.faults.household import HOST, Household, NeverStruck
from tests.faults.outcome import Outcome

KIND = ("F13", "a random fault every 30 s", "soak")
EVERY_SECONDS = 30.0
WARM_SHARE = 1 / 3  # of the faults: until then caches fill
FULL_AFTER = 240  # faults at least: the journal keeps 200 answers, and until then the heap grows with it
SLOPE_BAR_BYTES_PER_HOUR, LEAST_HOURS = 1e6, 1.0  # fewer warm ones say nothing of a slope
MORE_HANDLES = 8  # than when it was warm: links that come and go
Sample = tuple[float, int, int]  # seconds at a fault every 30 s, bytes, open files and sockets


async def run(home: Household, seconds: float, every_s: float = EVERY_SECONDS) -> Outcome:
    """Run for this long, or until the first wrong answer.

    Growth depends on the number of faults, so a run with more frequent faults is reported as if it had lasted as
    long as those faults usually take.
    """
    await home.whole()
    host = psutil.Process(home.nodes[HOST].process.pid)
    began, samples, n_faults, why = time.monotonic(), list[Sample](), 0, ""
    kinds = [*cases.killed(), *cases.stopped(2), *cases.stopped(4), *cases.twice()]
    while not why and time.monotonic() - began < seconds:
        next_at = time.monotonic() + every_s
        case = random.choice(kinds)
        try:
            outcome = await cases.run(home, case)
        except NeverStruck:
            continue
        n_faults += 1
        why = f"{', '.join(case.kind)}: {outcome.why}" if not outcome.passed else ""
        await home.whole()
        samples.append((n_faults * EVERY_SECONDS, host.memory_info().rss, handles(host)))
        await asyncio.sleep(max(0.0, next_at - time.monotonic()))
    return judged(samples, (time.monotonic() - began) / 3600, why)


def judged(samples: Sequence[Sample], hours: float, why: str) -> Outcome:
    """One sample for each fault."""
    warm = samples[max(FULL_AFTER, round(WARM_SHARE * len(samples))) :]
    slope = slope_per_hour(warm)
    more = warm[-1][2] - warm[0][2] if warm else 0
    warm_hours = len(warm) * EVERY_SECONDS / 3600
    if not why and warm_hours >= LEAST_HOURS and slope >= SLOPE_BAR_BYTES_PER_HOUR:
        why = f"the host's node grows by {slope / 1e6:.1f} MB an hour"
    if not why and more > MORE_HANDLES:
        why = f"{more} more open files and sockets than when it was warm"
    facts = {
        "hours": hours,
        "n": float(len(samples)),
        "warm_hours": warm_hours,
        "bytes_per_hour": slope,
        "more_handles": float(more),
    }
    return Outcome(*KIND, not why, why, in_time=not why, facts=facts)


def slope_per_hour(samples: Sequence[Sample]) -> float:
    """Bytes an hour of the straight line through them; 0 with fewer than two moments."""
    n = len(samples)
    mean_s, mean = (sum(sample[i] for sample in samples) / max(1, n) for i in (0, 1))
    spread = sum((at - mean_s) ** 2 for at, _, _ in samples)
    if not spread:
        return 0.0
    return 3600 * sum((at - mean_s) * (size - mean) for at, size, _ in samples) / spread


def handles(process: psutil.Process) -> int:
    """Open files and sockets; the matrix kills and stops by signals, so Windows is out of it anyway."""
    return process.num_fds()
