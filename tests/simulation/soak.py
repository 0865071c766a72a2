"""Thousands of seeds in batches, over several processes, with a book: what ends early is continued."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter

from tests.faults.outcome import ROOT, commit
from tests.simulation.judge import Tally, check, tally
from tests.simulation.world import Story, told

BOOK = ROOT / "docs" / "simulation.jsonl"  # in the repository: the next machine has it too
BATCH = 100  # seeds; a process takes a second to begin


@dataclass(frozen=True, slots=True)
class Batch:
    """The results of the seeds from `first` on."""

    first: int
    n: int
    seconds: float
    wrong: dict[str, str]  # what is wrong with a seed
    answers: Tally
    commit: str = ""


def batches(first: int, n: int, done: Iterable[Batch] = ()) -> list[tuple[int, int]]:
    """Return the start and size of each batch of seeds from `first` on that `done` does not contain."""
    known = {seed for batch in done for seed in range(batch.first, batch.first + batch.n)}
    result = []
    for start in range(first, first + n, BATCH):
        seeds = range(start, min(start + BATCH, first + n))
        if not known.issuperset(seeds):
            result.append((start, len(seeds)))
    return result


def played(first: int, n: int) -> Batch:
    """One batch, in this process."""
    began, stories, wrong = perf_counter(), list[Story](), dict[str, str]()
    for seed in range(first, first + n):
        try:
            story = told(seed)
            stories.append(story)
            check(story)
        except Exception as error:  # noqa: BLE001  whatever it is: this seed has found it
            wrong[str(seed)] = f"{type(error).__name__}: {error}"
    return Batch(first, n, perf_counter() - began, wrong, tally(stories))


def soaked(todo: Sequence[tuple[int, int]], n_workers: int, book: Path = BOOK) -> Iterator[Batch]:
    """All of these batches, as each ends and is in the book; each in a process of its own."""
    ours = commit()
    book.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(n_workers) as waiting:
        try:
            for future in as_completed([waiting.submit(_apart, *each) for each in todo]):
                batch = replace(future.result(), commit=ours)
                with book.open("a", encoding="utf-8", newline="\n") as file:
                    line = json.dumps(asdict(batch), separators=(",", ":"))
                    file.write(line + "\n")
                yield batch
        finally:
            waiting.shutdown(cancel_futures=True)


def _apart(first: int, n: int) -> Batch:
    words = [sys.executable, "-m", "tests.simulation", "--batch", str(first), str(n)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return _read(done.stdout)


def written(book: Path = BOOK) -> list[Batch]:
    """All that the book has; nothing without one."""
    lines = book.read_text("utf-8").splitlines() if book.exists() else []
    return [_read(line) for line in lines]


def _read(line: str) -> Batch:
    data = json.loads(line)
    return Batch(**data | {"answers": Tally(**data["answers"])})
