"""Amounts in a readable form: memory, time and speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.core.reasons import size

if TYPE_CHECKING:
    from rich.text import Text

BAR_CELLS = 10

__all__ = ["duration", "memory_bar", "milliseconds", "rate", "seconds", "size"]


def memory_bar(used: int, total: int, color: str = "blue") -> Text:
    """Return a bar of the used part of `whole`: `███░░░░░░░ 1.1 of 4.0 GiB`."""
    from rich.text import Text

    share = min(1.0, used / total) if total > 0 else 0.0
    full = round(share * BAR_CELLS)
    if used > 0:
        full = max(1, full)
    bar = Text("█" * full, style=color)
    bar.append("░" * (BAR_CELLS - full), style="dim")
    bar.append(f" {_of(used, total)}", style="default")
    return bar


def _of(used: int, total: int) -> str:
    first, second = size(used) if used else "0", size(total)
    if first.split()[-1] == second.split()[-1]:
        first = first.split()[0]
    return f"{first} of {second}"


def seconds(value: float | None) -> str:
    """Format a time: `0.42 s`, `12.3 s`, `2 min 5 s`, or `not measured`."""
    if value is None:
        return "not measured"
    if value >= 60:
        return f"{int(value) // 60} min {int(value) % 60} s"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def duration(value: float) -> str:
    """Format a time in its largest unit: `45 s`, `5 min`, `1.5 h`."""
    if value < 60:
        return f"{value:.0f} s"
    if value < 3600:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:.1f} h".replace(".0 h", " h")


def milliseconds(value: float | None) -> str:
    return "not measured" if value is None else f"{1000 * value:.1f} ms"


def rate(value: float | None) -> str:
    """Format a rate in tokens per second."""
    return "not measured" if value is None else f"{value:.1f} tok/s"
