"""Figures that must stay constant while the window is used: memory, handles, objects, references to None and True."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

ROWS = 12  # of the table


@dataclass(frozen=True, slots=True)
class Reading:
    """The figures after a round."""

    second: int
    own_kib: int  # memory that only this process uses
    handles: int
    qt_objects: int
    wrappers: int  # Python wrappers of Qt objects
    gone: int  # wrappers of deleted Qt objects
    python_objects: int
    nones: int  # references
    trues: int


@dataclass(frozen=True, slots=True)
class Bound:
    """The limits for the drift of a figure from the middle third of the rounds to the last. None means no limit."""

    rise: int | None
    fall: int | None


BOUNDS = {
    "own_kib": Bound(8 << 10, None),
    "handles": Bound(4, None),
    "qt_objects": Bound(100, None),
    "wrappers": Bound(100, None),
    "gone": Bound(30, None),
    "python_objects": Bound(4000, None),  # the Activity page collects up to 200 answers
    # PySide takes a reference when an object is first asked for a Qt function that Python did not override, and never
    # releases it. The count rises with every widget that comes and goes, which is harmless and costs no memory. A
    # falling count would end the process at zero.
    "nones": Bound(None, 2000),
    "trues": Bound(1000, 1000),
}


@dataclass
class Ledger:
    """The readings of all rounds. The first third of the rounds is a warm-up."""

    readings: list[Reading] = field(default_factory=list)

    def grown(self, name: str) -> float:
        """Return the drift of a figure from the middle third to the last third."""
        figures = [float(getattr(reading, name)) for reading in self.readings]
        third = len(figures) // 3
        middle, last = figures[third : 2 * third] or figures[:1], figures[2 * third :]
        return statistics.median(last) - statistics.median(middle)

    def faults(self) -> list[str]:
        """Return a sentence about each figure whose drift exceeds its limits."""
        problems = []
        for name, bound in BOUNDS.items():
            by = self.grown(name)
            if bound.rise is not None and by > bound.rise:
                problems.append(f"{name} rose by {by:,.0f}, and {bound.rise:,} is the most")
            if bound.fall is not None and -by > bound.fall:
                problems.append(f"{name} fell by {-by:,.0f}, and {bound.fall:,} is the most")
        return problems

    def table(self) -> list[str]:
        """Return a Markdown table with a selection of rounds, and the drift of each figure."""
        names = [figure.name for figure in fields(Reading)]
        last = len(self.readings) - 1
        chosen = sorted({round(at * last / (ROWS - 1)) for at in range(ROWS)})
        rows = [(str(at + 1), *(f"{getattr(self.readings[at], name):,}" for name in names)) for at in chosen]
        moved = [f"{self.grown(name):+,.0f}" if name in BOUNDS else "" for name in names]
        return lined(["round", *names], [*rows, ["last third", *moved]])


def lined(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table with aligned columns."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) + " |"

    return [line(head), "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|", *map(line, rows)]
