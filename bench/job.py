"""One call of the benchmark: what its parts share, and where they leave what they found."""

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
    """One call: what it may use, and what it has found so far."""

    options: Options
    model: ModelFacts
    facts: dict[str, Any]
    homes: Path
    sections: dict[str, Any] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    tuned: dict[str, Tuned] = field(default_factory=dict)  # what this or an earlier call found

    def add(self, name: str, data: Any, text: str) -> None:
        """Keep a part's result and write the report as far as it goes."""
        self.sections[name] = data
        self.texts.append(text)
        report.write(self.options.out, self.facts, self.sections, self.texts)

    def cannot(self, name: str, title: str, why: str) -> None:
        """Say honestly that a part was not measured."""
        say(f"{name}: not measurable: {why}")
        self.add(name, {"not_measurable": why}, f"## {title}\n\nNot measurable: {why}\n")

    def failed(self, name: str, why: str) -> None:
        """Note that a part broke off; the others still run."""
        say(f"{name}: failed: {why}")
        self.failures.append(name)
        self.add(name, {"failed": why}, f"## {name}: failed\n\n{why}\n")

    def family(self) -> Children:
        return Children(self.options.out / "logs")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
