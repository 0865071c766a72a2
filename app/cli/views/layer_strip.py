"""Layers as a picture: one row of cells for a model, filled where a machine holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.measure import Measurement
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

NARROWEST, WIDEST = 4, 40
COLORS = ("blue", "green", "magenta", "cyan", "yellow")
HELD, ELSEWHERE = "█", "░"

Run = tuple[int, int]


class Strip:
    """`n_layers` cells, or fewer that each stand for several: at most 40, and whatever a narrow terminal leaves."""

    def __init__(self, runs: Sequence[Run], n_layers: int, color: str) -> None:
        self._runs, self._n_layers, self._color = runs, n_layers, color

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        most = min(self._n_layers, WIDEST)
        return Measurement(min(most, NARROWEST), most)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield strip(self._runs, self._n_layers, self._color, options.max_width)


def strip(runs: Sequence[Run], n_layers: int, color: str, widest: int = WIDEST) -> Text:
    """A cell for each layer, as far as they have room; else each stands for several."""
    width = min(n_layers, widest, WIDEST)
    picture = Text()
    for cell in range(width):
        layer = int((cell + 0.5) * n_layers / width)
        held = any(first <= layer < last for first, last in runs)
        picture.append(HELD if held else ELSEWHERE, style=color if held else "dim")
    return picture


def in_words(runs: Sequence[Run]) -> str:
    """Runs as people count: `1–4, 13–16`. Layers are counted from one."""
    return ", ".join(f"{first + 1}" if last == first + 1 else f"{first + 1}–{last}" for first, last in runs)


def joined(runs: Sequence[Run]) -> list[Run]:
    """Runs in order; where one begins at the end of another, they are one."""
    together: list[Run] = []
    for first, last in sorted(runs):
        if together and together[-1][1] == first:
            together[-1] = (together[-1][0], last)
        else:
            together.append((first, last))
    return together
