"""Commands that a sentence names, as they are to be typed here: with the home that this command was given."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

_HOME: ContextVar[Path | None] = ContextVar("home", default=None)
# What is to be typed on another machine has that machine's home, and the demo has homes of its own.
_COMMAND = re.compile(
    r"`(poolhouse (?!demo|[^`]*--home)[^`]+?)( --[^`]*)?`"
    r"(?![^`.]*\b(?:there|on (?:a|another|the other) machine)\b)"
)


def remember(home: Path | None) -> Path | None:
    """Called by the option --home of each command, also where it was not given."""
    _HOME.set(home)
    return home


def home_option() -> str:
    """` --home DIR` as it is typed, from any folder; nothing without a home."""
    home = _HOME.get()
    if home is None:
        return ""
    whole = str(home.expanduser().resolve())
    return f" --home {subprocess.list2cmdline([whole]) if os.name == 'nt' else shlex.quote(whole)}"


def own(sentence: str) -> str:
    """The sentence with the home in each command that it names for this machine."""
    option = home_option()
    if not option:
        return sentence
    return _COMMAND.sub(lambda found: f"`{found[1]}{option}{found[2] or ''}`", sentence)


def text(sentence: str, style: str = "") -> Text:
    """The same for a view. A line with a home in it is not broken: it is to be copied."""
    from rich.text import Text

    told = own(sentence)
    whole = told != sentence
    return Text(told, style=style, no_wrap=whole or None, overflow="ignore" if whole else None)
