"""What the simulation found, as a part of the page that `make faults` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.simulation.judge import Tally
from tests.simulation.soak import Batch

HEAD = """
## The simulation

`make soak` plays a household for each seed: real pipelines, recovery, lenders and worker service, and pretended clocks,
processes and connections, under up to three faults of thirteen kinds. Nobody may be told a wrong token, or wait for
ever. `make sim SEED=n` tells one story again. *Lost too often*: more than three times, which ends in words.
"""
PLAYED = """
| Seeds | Went wrong | Asked for | Finished | Lost too often | Asked later | Finished | Seconds a seed |
|---|---|---|---|---|---|---|---|
"""
SEEDS = """
The seeds of what it found. A seed's story is another whenever the household or its faults grow: each tells its own at
the commit named here, once the mend is taken out of it. All are among the 500 that every `make test` plays.

| Seeds | What went wrong | Mended in | Test beside |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A bug, and the seeds that showed it."""

    seeds: tuple[int, ...]
    what: str
    commit: str  # that mended it
    test: str  # of its own


FOUND = (
    Found(
        (41, 285), "a worker that stands still in its first step was given up after 60 s instead of 5",
        "c4bcdc3", "tests/inference/test_worker.py",
    ),
    Found(
        (66, 79), "one that stands still while it loads was given up after 300 s",
        "c4bcdc3", "tests/inference/test_worker.py",
    ),
    Found(
        (80,), "a lender said that it leaves while it was replaced already: nothing entered the new stages, for ever",
        "372d426", "tests/inference/test_recovery.py",
    ),
)  # fmt: skip


def section(batches: Sequence[Batch]) -> str:
    """With what was played, if anything was."""
    text = HEAD
    if batches:
        commits = list(dict.fromkeys(one.commit for one in batches))
        text += f"\n{'Commits' if len(commits) > 1 else 'Commit'} {', '.join(commits)}.\n"
        text += PLAYED + _played(batches)
    text += SEEDS + "".join(
        f"| {', '.join(map(str, one.seeds))} | {one.what} | {one.commit} | `{one.test}` |\n"
        for one in FOUND
    )
    return text


def _played(batches: Sequence[Batch]) -> str:
    answers = sum((one.answers for one in batches), Tally())
    n, wrong = sum(one.n for one in batches), [seed for one in batches for seed in one.wrong]
    first, last = min(one.first for one in batches), max(one.first + one.n for one in batches) - 1
    return (
        f"| {n}, of {first} to {last} | {', '.join(wrong) or 'none'} | {answers.asked} | {answers.finished} "
        f"| {answers.too_often} | {answers.late} | {answers.late_finished} "
        f"| {sum(one.seconds for one in batches) / n:.2f} |\n"
    )
