"""A small JSON file that the node keeps for itself: never read without a bound; what is damaged is put aside."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from app.decoding import decode

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_BYTES = 1 << 20


def decoded(file: Path, kind: type[T], most_bytes: int = MOST_BYTES) -> T:
    """What is in it. Raises OSError, and ValueError for what is no such thing, or longer than it can be."""
    with file.open("rb") as source:
        data = source.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"longer than {most_bytes} bytes")
    return decode(data, kind)  # a ValueError is all it raises


def read_or(
    file: Path, kind: type[T], label: str, most_bytes: int = MOST_BYTES, lost: Callable[[Path], None] = lambda _: None
) -> T:
    """What is in it, or an empty one: where there is none yet, and where it is damaged. That one is put aside, logged,
    and `lost` hears where it is: what can be measured again needs no more, a person's choices do."""
    try:
        return decoded(file, kind, most_bytes)
    except FileNotFoundError:
        return kind()
    except (OSError, ValueError) as error:
        aside = put_aside(file)
        log.warning("%s in %s: passed over and kept as %s, %s", label, file, aside, error)
        lost(aside)
        return kind()


def put_aside(file: Path) -> Path:
    """Where a damaged file is from now on: the next one that is written does not take its place."""
    aside = file.with_suffix(".damaged")
    with suppress(OSError):
        file.replace(aside)
        return aside
    return file
