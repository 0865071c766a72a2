"""The outcome of one run of the matrix, and a few sums over many of them."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Kind = tuple[str, str, str]  # row, name and phase
ROOT = Path(__file__).parents[2]
PAGE = "docs/faults.md"
# what runs write themselves: it does not make what runs another one
WRITTEN = (
    PAGE, "docs/faults.jsonl", "docs/simulation.jsonl", "docs/hostile.md", "docs/hostile.jsonl",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run, or one siege of many tries. Seconds from the fault; None where nothing was to be seen."""

    row: str  # of SAFETY.md 9
    name: str
    phase: str
    passed: bool
    why: str = ""  # if not
    said_s: float | None = None  # until the reader was told
    next_token_s: float | None = None  # until the first token after the longest gap
    recoveries: int = 0
    in_time: bool = True  # within the bars of its row
    facts: dict[str, float] = field(default_factory=dict)
    commit: str = ""  # what ran
    struck: bool = True  # else whoever should have been struck took no part: it counts as no run
    made_on: str = ""  # a kind of machine, never its name
    seed: int = 0  # what the run itself drew from: its moment, its addresses, what attackers say
    load: float = 0.0  # of that machine in the minute before: times beside other work are no facts

    @property
    def kind(self) -> Kind:
        return self.row, self.name, self.phase


def quantile(values: Iterable[float | None], share: float) -> float | None:
    """The value that this share of them does not pass; None without any."""
    known = sorted(value for value in values if value is not None)
    return known[min(len(known) - 1, round(share * (len(known) - 1)))] if known else None


def spread(kinds: Sequence[Kind], n: int) -> Counter[Kind]:
    """Return this many runs, spread evenly over the kinds, with at least one of each."""
    each, more = divmod(max(n, len(kinds)), len(kinds))
    return Counter({kind: each + (number < more) for number, kind in enumerate(kinds)})


def commit() -> str:
    """Return the checked-out commit, and whether tracked files differ from it other than by a run."""
    name = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *(f":!{name}" for name in WRITTEN))
    return (name or "unknown") + ("-dirty" if changed else "")


def _git(*words: str) -> str:
    run = subprocess.run(["git", *words], capture_output=True, text=True, check=False, cwd=ROOT)
    return run.stdout.strip()
