"""The commands named in a sentence, as they are to be typed here: with the home that they are for."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

# What is to be typed on another machine has that machine's home, and the demo has homes of its own.
_COMMAND = re.compile(
    r"`(poolhouse(?![^`]*--home)(?: (?!demo)[^`]+?)?)( --[^`]*)?`"
    r"(?![^`.]*\b(?:there|on (?:a|another|the other) machine)\b)"
)


def home_option(root: Path) -> str:
    """Return ` --home DIR`, as it is typed from any folder."""
    whole = str(root)
    return f" --home {subprocess.list2cmdline([whole]) if os.name == 'nt' else shlex.quote(whole)}"


def with_home(sentence: str, option: str) -> str:
    """The sentence with the option in each command that it names for this machine; nothing: as it is."""
    if not option:
        return sentence
    return _COMMAND.sub(lambda match: f"`{match[1]}{option}{match[2] or ''}`", sentence)
