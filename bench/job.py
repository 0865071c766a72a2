"""A run of the benchmark: what its parts have in common, and where they store their results."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import report
from bench.children import Children
from bench.machine import ModelFacts
from bench.options import Options
from bench.rounds import Tuned


@dataclass(slots=True)
class Bench:
    """A run of the benchmark: its options, its folders, and the results so far."""

    options: Options
    model: ModelFacts
    facts: dict[str, Any]
    homes: Path
    sections: dict[str, Any] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    tuned: dict[str, Tuned] = field(default_factory=dict)  # from this or an earlier run

    def add(self, name: str, data: Any, text: str) -> None:
        """Store the result of a part, and rewrite the report."""
        self.sections[name] = data
        self.texts.append(text)
        report.write(self.options.out, self.facts, self.sections, self.texts)

    def cannot(self, name: str, title: str, why: str) -> None:
        """Report that a part cannot be measured on this computer."""
        say(f"{name}: not measurable: {why}")
        self.add(name, {"not_measurable": why}, f"## {title}\n\nNot measurable: {why}\n")

    def failed(self, name: str, why: str) -> None:
        """Report that a part has failed. The remaining parts still run."""
        say(f"{name}: failed: {why}")
        self.failures.append(name)
        self.add(name, {"failed": why}, f"## {name}: failed\n\n{why}\n")

    def family(self) -> Children:
        return Children(self.options.out / "logs")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
