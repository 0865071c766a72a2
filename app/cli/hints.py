"""Commands that a sentence names, as they are to be typed here: with the home that this command was given."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from app.machine import paths

if TYPE_CHECKING:
    from rich.text import Text

_HOME: ContextVar[Path | None] = ContextVar("home", default=None)


def remember_home(home: Path | None) -> Path | None:
    """Called by the option --home of each command, also where it was not given."""
    _HOME.set(home)
    return home


def home_option() -> str:
    """` --home DIR` as it is typed, from any folder; nothing without a home."""
    home = _HOME.get()
    if home is None:
        return ""
    return paths.home_option(home.expanduser().resolve())


def with_home(sentence: str) -> str:
    """The sentence with the home in each command that it names for this machine."""
    return paths.with_home(sentence, home_option())


def text(sentence: str, style: str = "") -> Text:
    """The same for a view. A line with a home in it is not broken: it is to be copied."""
    from rich.text import Text

    sentence_here = with_home(sentence)
    whole = sentence_here != sentence
    return Text(sentence_here, style=style, no_wrap=whole or None, overflow="ignore" if whole else None)
