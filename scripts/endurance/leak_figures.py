"""Figures that must stay constant while the window works: memory, handles, objects, references to None and True."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

ROWS = 12  # of the table


@dataclass(frozen=True, slots=True)
class Reading:
    """The figures after one round."""

    second: int
    own_kib: int  # memory that is this process's alone
    handles: int
    qt_objects: int
    wrappers: int  # of Qt's objects, for Python
    gone: int  # wrappers of what Qt has no more
    python_objects: int
    nones: int  # references
    trues: int


@dataclass(frozen=True, slots=True)
class Bound:
    """The bounds of a figure's drift from the middle third of the rounds to the last; None: reported only."""

    rise: int | None
    fall: int | None


BOUNDS = {
    "own_kib": Bound(8 << 10, None),
    "handles": Bound(4, None),
    "qt_objects": Bound(100, None),
    "wrappers": Bound(100, None),
    "gone": Bound(30, None),
    "python_objects": Bound(4000, None),  # the Activity page comes to know up to 200 answers
    # PySide takes one when an object is first asked for a function of Qt's that Python did not override, and
    # does not give it back when the object goes: it rises with every widget that comes and goes, costs no
    # memory, and ends nothing. One that falls ends the process at zero.
    "nones": Bound(None, 2000),
    "trues": Bound(1000, 1000),
}


@dataclass
class Ledger:
    """A reading for each round; the first third is for warming up."""

    readings: list[Reading] = field(default_factory=list)

    def grown(self, name: str) -> float:
        """Return the drift from the middle third to the last."""
        figures = [float(getattr(reading, name)) for reading in self.readings]
        third = len(figures) // 3
        middle, last = figures[third : 2 * third] or figures[:1], figures[2 * third :]
        return statistics.median(last) - statistics.median(middle)

    def faults(self) -> list[str]:
        """Return the figures that did not stay constant."""
        problems = []
        for name, bound in BOUNDS.items():
            by = self.grown(name)
            if bound.rise is not None and by > bound.rise:
                problems.append(f"{name} rose by {by:,.0f}, and {bound.rise:,} is the most")
            if bound.fall is not None and -by > bound.fall:
                problems.append(f"{name} fell by {-by:,.0f}, and {bound.fall:,} is the most")
        return problems

    def table(self) -> list[str]:
        """Some rounds, first and last among them, and how much each figure moved."""
        names = [figure.name for figure in fields(Reading)]
        last = len(self.readings) - 1
        chosen = sorted({round(at * last / (ROWS - 1)) for at in range(ROWS)})
        rows = [(str(at + 1), *(f"{getattr(self.readings[at], name):,}" for name in names)) for at in chosen]
        moved = [f"{self.grown(name):+,.0f}" if name in BOUNDS else "" for name in names]
        return lined(["round", *names], [*rows, ["last third", *moved]])


def lined(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table with aligned columns."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) + " |"

    return [line(head), "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|", *map(line, rows)]
