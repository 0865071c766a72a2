"""Commands named in sentences, completed so that they can be typed as shown: with the `--home` of this command."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from app.machine import paths

if TYPE_CHECKING:
    from rich.text import Text

_HOME: ContextVar[Path | None] = ContextVar("home", default=None)


def remember_home(home: Path | None) -> Path | None:
    """Remember the home; every command's `--home` option calls this, even if it was not given."""
    _HOME.set(home)
    return home


def home_option() -> str:
    """Return ` --home DIR` as it can be typed in any folder, or "" for the default home."""
    home = _HOME.get()
    if home is None:
        return ""
    return paths.home_option(home.expanduser().resolve())


def with_home(sentence: str) -> str:
    """Add the home to each command that the sentence names for this machine."""
    return paths.with_home(sentence, home_option())


def text(sentence: str, style: str = "") -> Text:
    """Return the sentence for a view, with the home added. A line with a home is not wrapped, so that it can be
    copied."""
    from rich.text import Text

    sentence_here = with_home(sentence)
    has_home = sentence_here != sentence
    return Text(sentence_here, style=style, no_wrap=has_home or None, overflow="ignore" if has_home else None)
