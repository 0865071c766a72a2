"""Layers as a picture: one row of cells for a model, filled where a machine holds them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

WIDEST = 40
COLOURS = ("blue", "green", "magenta", "cyan", "yellow")
HELD, ELSEWHERE = "█", "░"

Run = tuple[int, int]


def strip(runs: Sequence[Run], n_layers: int, colour: str) -> Text:
    """`n_layers` cells, or 40 that each stand for several layers."""
    width = min(n_layers, WIDEST)
    picture = Text()
    for cell in range(width):
        layer = int((cell + 0.5) * n_layers / width)
        held = any(first <= layer < last for first, last in runs)
        picture.append(HELD if held else ELSEWHERE, style=colour if held else "dim")
    return picture


def in_words(runs: Sequence[Run]) -> str:
    """Runs as people count: `1–4, 13–16`. Layers are counted from one."""
    return ", ".join(
        f"{first + 1}" if last == first + 1 else f"{first + 1}–{last}" for first, last in runs
    )


def joined(runs: Sequence[Run]) -> list[Run]:
    """Runs in order; where one begins at the end of another, they are one."""
    together: list[Run] = []
    for first, last in sorted(runs):
        if together and together[-1][1] == first:
            together[-1] = (together[-1][0], last)
        else:
            together.append((first, last))
    return together
