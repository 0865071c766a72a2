"""The ids of machines, pipelines and sequences, and the cleaning, comparison and uniqueness of machine names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import count
from typing import NewType

MachineId = NewType("MachineId", str)  # 64 hex digits: the SHA-256 hash of the machine's DER certificate
PipelineId = NewType("PipelineId", bytes)  # 16 random bytes, chosen by the host
SequenceId = NewType("SequenceId", int)  # a counter of the host, never reused while the node runs

MACHINE_ID_DIGITS = 64
PIPELINE_ID_BYTES = 16
MAX_NAME_CHARACTERS = 64

_HEX = frozenset("0123456789abcdef")


def machine_id(text: str) -> MachineId:
    """Return the id written in `text`. Raises ValueError unless it is 64 lowercase hex digits."""
    if len(text) != MACHINE_ID_DIGITS or not _HEX.issuperset(text):
        raise ValueError("a machine id is 64 hex digits")
    return MachineId(text)


def pipeline_id(text: str) -> PipelineId:
    """Return the id written in `text`. Raises ValueError unless it is 32 lowercase hex digits."""
    if len(text) != 2 * PIPELINE_ID_BYTES or not _HEX.issuperset(text):
        raise ValueError("a pipeline id is 32 hex digits")
    return PipelineId(bytes.fromhex(text))


NO_NAME = "unnamed"
# Characters that are invisible although Unicode classifies them as letters or marks: fillers, joiners, selectors, and
# the empty Braille cell.
_UNSEEN = frozenset(
    map(
        chr,
        (
            0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, *range(0xFE00, 0xFE10),
            0xFFA0, *range(0xE0100, 0xE01F0),
        ),
    )
)  # fmt: skip
_NUMBERED = re.compile(r"(.*\S) ([0-9]{1,3})")


def clean_name(text: str) -> str:
    """Return a machine's name in a form suitable for display.

    It has at most 64 characters, at least one of which is visible, and no control or direction characters.
    """
    shown = "".join(c for c in text if not unicodedata.category(c).startswith(("C", "Zl", "Zp")))
    name = " ".join(shown.split())[:MAX_NAME_CHARACTERS].strip()
    return NO_NAME if _UNSEEN.issuperset(name.replace(" ", "")) else name


def clean_text(text: str) -> str:
    """Clean another machine's words about itself, such as the name of its processor, for display."""
    return clean_name(text) if text else ""


def name_key(name: str) -> str:
    """Return a key that is equal for names that look the same.

    Case, width, spaces and invisible characters are ignored. Similar letters of different alphabets remain distinct.
    """
    plain = unicodedata.normalize("NFKC", clean_name(name)).casefold()
    seen = (c for c in unicodedata.normalize("NFKC", plain) if c not in _UNSEEN)
    return " ".join("".join(seen).split())


def same_name(name: str, other: str) -> bool:
    """Return whether two names look the same to a reader."""
    return name_key(name) == name_key(other)


def is_taken(name: str, names: Iterable[str]) -> bool:
    """Return whether `names` contains this name or a name that looks the same."""
    return name_key(name) in map(name_key, names)


def unless_taken(announced: str, otherwise: str, names: Iterable[str]) -> str:
    """Return the name that a machine announced, or `otherwise` if another machine already uses it.

    If two machines had the same name, reports about one could be mistaken for reports about the other.
    """
    return otherwise if is_taken(announced, names) else clean_name(announced)


def free_name(preferred: str, names: Iterable[str]) -> str:
    """Return `preferred`, with a number appended if the name is taken."""
    name, taken = clean_name(preferred), set(map(name_key, names))
    if name_key(name) not in taken:
        return name
    numbered = _NUMBERED.fullmatch(name)
    stem, last = (numbered[1], int(numbered[2])) if numbered else (name, 1)
    tries = (f"{stem[: MAX_NAME_CHARACTERS - len(str(n)) - 1].rstrip()} {n}" for n in count(last + 1))
    return next(attempt for attempt in tries if name_key(attempt) not in taken)
