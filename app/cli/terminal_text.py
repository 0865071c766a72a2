"""Text for a terminal: sanitized foreign text, commands with the current `--home`, and readable amounts."""

from __future__ import annotations

import re
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.planner.forecast_range import rounded_range
from app.core.reasons import size
from app.machine import paths

if TYPE_CHECKING:
    from rich.text import Text

    from app.api.models import SharedModel

MAX_NAME = 64  # maximum characters shown of a foreign name (SAFETY.md 7)
ID_SHOWN = 8  # characters of a machine's ID that stand for it
_PLAIN = re.compile(r"[\w.@ -]+")  # means nothing to any shell inside double quotes

_KEPT = "\n\t"
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_LONE = range(0xD800, 0xE000)  # surrogates, which cannot be encoded
_TEXT = dict.fromkeys(code for code in (*_CONTROLS, *_BIDI, *_LONE) if chr(code) not in _KEPT)
_LINE = {**_TEXT, ord("\n"): " ", ord("\t"): " "}


def text(foreign: str) -> str:
    """Return a model's text without C0, C1 and bidirectional control characters, except newlines and tabs."""
    return foreign.translate(_TEXT)


def line(foreign: str) -> str:
    """Return foreign text on one line, without control characters."""
    return foreign.translate(_LINE)


def name(foreign: str) -> str:
    """Return a foreign name on one line, limited to 64 characters."""
    shown = line(foreign)
    return shown if len(shown) <= MAX_NAME else shown[: MAX_NAME - 1] + "…"


_HOME: ContextVar[Path | None] = ContextVar("home", default=None)


def remember_home(home: Path | None) -> Path | None:
    """Remember the home for later messages."""
    _HOME.set(home)
    return home


def home_option() -> str:
    """Return ` --home DIR` in a form that works in any folder, or "" for the default home."""
    home = _HOME.get()
    if home is None:
        return ""
    return paths.home_option(home.expanduser().resolve())


def with_home(sentence: str) -> str:
    """Add `--home` to each command in the sentence that must run with this home."""
    return paths.with_home(sentence, home_option())


def command_text(sentence: str, style: str = "") -> Text:
    """Return the sentence for a view, with `--home` added to its commands.

    A line with `--home` is not wrapped, so it can be copied.
    """
    from rich.text import Text

    sentence_here = with_home(sentence)
    has_home = sentence_here != sentence
    return Text(sentence_here, style=style, no_wrap=has_home or None, overflow="ignore" if has_home else None)


BAR_CELLS = 10
SHORT_SECONDS = 0.1  # below which a time is shown in milliseconds


def memory_bar(used: int, total: int, color: str = "blue") -> Text:
    """Return a bar that shows which part of `total` is used, such as `███░░░░░░░ 1.1 of 4.0 GiB`."""
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
    """Format a time, such as `0.42 s`, `12.3 s`, `2 min 5 s` or `not measured`."""
    if value is None:
        return "not measured"
    if value < SHORT_SECONDS:
        return f"{1000 * value:.{1 if value < 0.01 else 0}f} ms"
    if value >= 60:
        return f"{int(value) // 60} min {int(value) % 60} s"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def duration(value: float) -> str:
    """Format a time in its largest unit, such as `45 s`, `5 min` or `1.5 h`."""
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


def rate_range(value: float, spread: float) -> str:
    """Format a forecast rate as a range, such as `9–14 tok/s`."""
    return f"{_range(value, spread)} tok/s"


def seconds_range(value: float, spread: float) -> str:
    """Format a forecast time as a range, such as `0.8–1.3 s`."""
    high = value * spread
    if high < SHORT_SECONDS:
        return f"{_range(1000 * value, spread)} ms"
    return f"{_range(value, spread)} s" if high < 60 else f"{_range(value / 60, spread)} min"


def _range(value: float, spread: float) -> str:
    low, high, digits = rounded_range(value, spread)
    shown = f"{low:,.{digits}f}"
    return shown if low == high else f"{shown}–{high:,.{digits}f}"


def ask_command(model: SharedModel) -> str:
    """Return the command that asks another machine's model.

    A machine whose name means something to a shell is named by its ID, because people copy the command.
    """
    reference = model.reference if _PLAIN.fullmatch(model.reference) else f"{model.model}@{model.machine_id[:ID_SHOWN]}"
    quoted = f'"{reference}"' if " " in reference else reference
    return f'poolhouse ask --model {line(quoted)} "QUESTION"'
