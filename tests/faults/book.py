"""The book of the matrix: a line a run, kept in the repository, so that runs add up over machines and commits."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import MISSING, asdict, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from app.machine.hardware.devices import processor_name
from tests.faults.outcome import Kind, Outcome, commit

DIGITS = 4  # of each figure: no run is as exact as that
DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Outcome) if field.default is not MISSING} | {
    "facts": {},
    "passed": True,
}


class Book:
    """A file with a line for each outcome. `goes_on`: what it holds already counts, and is not made again."""

    def __init__(self, path: Path, *, goes_on: bool) -> None:
        self._path, self._commit = path, commit()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self.outcomes = [read(line) for line in path.read_text("utf-8").splitlines() if line]
        self._before = len(self.outcomes)  # made by earlier calls
        self._counts_from = 0 if goes_on else self._before

    @property
    def made(self) -> list[Outcome]:
        """Return the runs of this call, whatever else the book contains."""
        return self.outcomes[self._before :]

    @property
    def _counted(self) -> list[Outcome]:
        return self.outcomes[self._counts_from :]

    def add(self, outcome: Outcome) -> None:
        self.take([written(replace(outcome, commit=self._commit, made_on=kind_of_machine()))])

    def take(self, lines: Iterable[str]) -> None:
        """Add these, as another book has them: runs beside each other keep books of their own."""
        with self._path.open("a", encoding="utf-8", newline="\n") as file:
            for line in lines:
                self.outcomes.append(read(line))
                file.write(line + "\n")

    def missing(self, expected: Counter[Kind]) -> Counter[Kind]:
        """Return the remaining runs."""
        return expected - Counter(outcome.kind for outcome in self._counted if outcome.struck or not outcome.passed)

    def holds_siege(self, kind: Kind, n: int) -> bool:
        """Return whether this many attempts were withstood in one siege. A failed siege is repeated."""
        return any(
            outcome.passed and outcome.facts.get("n", 0) >= n for outcome in self._counted if outcome.kind == kind
        )

    def missed_in_a_row(self, kind: Kind) -> int:
        """Return how often a kind struck nobody since its last real run."""
        outcomes = [outcome for outcome in self._counted if outcome.kind == kind]
        return next((n for n, outcome in enumerate(reversed(outcomes)) if outcome.struck), len(outcomes))


def written(outcome: Outcome) -> str:
    """One line: what is as usual is left out, and figures are as long as they say something."""
    result = {
        name: _short(value)
        for name, value in asdict(outcome).items()
        if name not in DEFAULTS or value != DEFAULTS[name]
    }
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))


def read(line: str) -> Outcome:
    return Outcome(**{"passed": True} | json.loads(line))


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(f"{value:.{DIGITS}g}")
    return value


@cache
def kind_of_machine() -> str:
    return (
        f"{platform.system()} {platform.machine()}, {psutil.cpu_count() or 1} cores of {processor_name()}, "
        f"Python {platform.python_version()}"
    )


def load() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
