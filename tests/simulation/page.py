"""The results of the simulation, as a part of the page that `make faults` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.simulation.judge import Tally
from tests.simulation.soak import Batch

HEAD = """
## The simulation

`make soak` plays a household for each seed: real pipelines, recovery, lenders and worker service, and pretended clocks,
processes and connections, under up to three faults of thirteen kinds; in some, a lender's owner takes the memory back
too, or its whole node is gone at once. Nobody may be told a wrong token, or wait for ever. `make sim SEED=n` tells one
story again. *Lost too often*: more than three times, which ends in words.
"""
PLAYED = """
| Seeds | Went wrong | Asked for | Finished | Lost too often | Asked later | Finished | Seconds a seed |
|---|---|---|---|---|---|---|---|
"""
SEEDS = """
The seeds of what it found. A seed's story is another whenever the household or its faults grow. *Shows it*: the commit
whose story, with the mend taken out, goes wrong again, and how; for the others the story had changed by the time it was
committed. Those below 500 are among those that `make test` and `make long` play.

| Seed | What went wrong | Mended in | Shows it | Test beside |
|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A bug, and a seed that showed it."""

    seed: int
    what: str
    commit: str  # that mended it
    test: str  # of its own
    shows: str = "–"


FIRST_STEP = "a worker that stands still in its first step was given up after 60 s instead of 5"
LOADING = "one that stands still while it loads was given up after 300 s"
WORKER = "tests/inference/worker/test_worker.py"
FOUND = (
    Found(41, FIRST_STEP, "c4bcdc3", WORKER),
    Found(285, FIRST_STEP, "c4bcdc3", WORKER),
    Found(66, LOADING, "c4bcdc3", WORKER),
    Found(79, LOADING, "c4bcdc3", WORKER, "c4bcdc3: its story takes 301 s instead of 6"),
    Found(
        80, "a split that a lender had left stayed closed to every later question", "c1face5",
        "tests/inference/pipeline/test_replica_set.py", "413863c: who asks later gets no token",
    ),
    Found(
        1200, "a whole model elsewhere that stands still before it begins was given up after 60 s instead of 5",
        "3c8fc90", "tests/inference/test_whole_elsewhere.py", "3c8fc90: its story takes 70 s instead of 16",
    ),
    Found(
        8096, "a whole model elsewhere was given up when a token overtook one that a broken connection had swallowed",
        "d9f6cc9",
        "tests/inference/stages/test_channel_link.py", "d9f6cc9: it is replaced, and not only its connection",
    ),
    Found(
        20875, "while machines left both replicas of a model, who asked was told that nothing serves", "83d7a02",
        "tests/inference/pipeline/test_replica_set.py", "83d7a02: so were both late askers",
    ),
)  # fmt: skip


def section(batches: Sequence[Batch]) -> str:
    """Return the section with the stories, if there were any."""
    text = HEAD
    if batches:
        commits = list(dict.fromkeys(batch.commit for batch in batches))
        text += f"\n{'Commits' if len(commits) > 1 else 'Commit'} {', '.join(commits)}.\n"
        text += PLAYED + _played(batches)
    text += SEEDS + "".join(
        f"| {item.seed} | {item.what} | {item.commit} | {item.shows} | `{item.test}` |\n" for item in FOUND
    )
    return text


def _played(batches: Sequence[Batch]) -> str:
    answers = sum((batch.answers for batch in batches), Tally())
    n, wrong = sum(batch.n for batch in batches), [seed for batch in batches for seed in batch.wrong]
    first, last = min(batch.first for batch in batches), max(batch.first + batch.n for batch in batches) - 1
    return (
        f"| {n}, of {first} to {last} | {', '.join(wrong) or 'none'} | {answers.asked} | {answers.finished} "
        f"| {answers.too_often} | {answers.late} | {answers.late_finished} "
        f"| {sum(batch.seconds for batch in batches) / n:.2f} |\n"
    )
