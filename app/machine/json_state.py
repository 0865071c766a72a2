"""Functions that read the node's small JSON files with a size limit and set damaged files aside."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from app.decoding import decode

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_BYTES = 1 << 20


def read_json(file: Path, kind: type[T], most_bytes: int = MAX_BYTES) -> T:
    """Read a JSON file as type `kind`. Raises OSError, or ValueError if its content is too long or has another type."""
    with file.open("rb") as source:
        data = source.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"longer than {most_bytes} bytes")
    return decode(data, kind)  # raises only ValueError


def read_json_or_default(
    file: Path, kind: type[T], label: str, most_bytes: int = MAX_BYTES, lost: Callable[[Path], None] = lambda _: None
) -> T:
    """Read a JSON file as type `kind`, or return `kind()` if the file does not exist or is damaged.

    A damaged file is set aside and logged, and `lost` is called with its new path. The caller decides whether to tell
    the user: lost settings matter, but lost measurements can be repeated.
    """
    try:
        return read_json(file, kind, most_bytes)
    except FileNotFoundError:
        return kind()
    except (OSError, ValueError) as error:
        aside = put_aside(file)
        log.warning("%s in %s is damaged and was set aside as %s: %s", label, file, aside, error)
        lost(aside)
        return kind()


def put_aside(file: Path) -> Path:
    """Rename a damaged file so that the next write does not replace it. Return its new path."""
    aside = file.with_suffix(".damaged")
    with suppress(OSError):
        file.replace(aside)
        return aside
    return file
