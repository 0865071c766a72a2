"""What each run of the matrix found, and the book that keeps all of them: a run that ends early is continued."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

Kind = tuple[str, str, str]  # row, name and phase
ROOT = Path(__file__).parents[2]
PAGE = "docs/faults.md"  # what a run writes itself


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
    commit: str = ""
    struck: bool = True  # else whoever should have been struck took no part: it counts as no run

    @property
    def kind(self) -> Kind:
        return self.row, self.name, self.phase


class Book:
    """A file with a line for each outcome."""

    def __init__(self, path: Path, *, goes_on: bool) -> None:
        self._path, self._commit = path, commit()
        self.outcomes: list[Outcome] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        if goes_on and path.exists():
            lines = path.read_text("utf-8").splitlines()
            self.outcomes = [Outcome(**json.loads(line)) for line in lines]
        else:
            path.write_text("", "utf-8")

    def add(self, found: Outcome) -> None:
        fields = asdict(found) | {"commit": self._commit}
        self.outcomes.append(Outcome(**fields))
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(fields) + "\n")

    def missing(self, wanted: Counter[Kind]) -> Counter[Kind]:
        """What is still to be run."""
        return wanted - Counter(one.kind for one in self.outcomes if one.struck or not one.passed)

    def holds_siege(self, kind: Kind, n: int) -> bool:
        """Whether so many tries were withstood in one siege. One that was not withstood is made again."""
        return any(
            one.passed and one.facts.get("n", 0) >= n for one in self.outcomes if one.kind == kind
        )

    def missed_in_a_row(self, kind: Kind) -> int:
        """How often, after its last real run, a kind struck nobody."""
        ones = [one for one in self.outcomes if one.kind == kind]
        return next((n for n, one in enumerate(reversed(ones)) if one.struck), len(ones))


def quantile(values: Iterable[float | None], share: float) -> float | None:
    """The value that this share of them does not pass; None without any."""
    known = sorted(value for value in values if value is not None)
    return known[min(len(known) - 1, round(share * (len(known) - 1)))] if known else None


def spread(kinds: Sequence[Kind], n: int) -> Counter[Kind]:
    """So many runs, evenly over the kinds; at least one of each."""
    each, more = divmod(max(n, len(kinds)), len(kinds))
    return Counter({kind: each + (number < more) for number, kind in enumerate(kinds)})


def commit() -> str:
    """What runs: the commit that is checked out, and whether anything but the page differs from it."""
    name = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", f":!{PAGE}")
    return (name or "unknown") + ("-dirty" if changed else "")


def _git(*words: str) -> str:
    found = subprocess.run(["git", *words], capture_output=True, text=True, check=False, cwd=ROOT)
    return found.stdout.strip()
