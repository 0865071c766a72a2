"""Small JSON files that the node keeps for itself: read within a bound; a damaged one is put aside."""

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


def read_json(file: Path, kind: type[T], most_bytes: int = MOST_BYTES) -> T:
    """Return the contents of a file. Raises OSError, and ValueError where they are of another form or too long."""
    with file.open("rb") as source:
        data = source.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"longer than {most_bytes} bytes")
    return decode(data, kind)  # a ValueError is all it raises


def read_json_or_default(
    file: Path, kind: type[T], label: str, most_bytes: int = MOST_BYTES, lost: Callable[[Path], None] = lambda _: None
) -> T:
    """Return the contents of a file, or an empty value where there is none yet or it is damaged.

    A damaged file is put aside and logged, and `lost` is called with its new place: measurements can be made again, but
    a person must hear about lost choices.
    """
    try:
        return read_json(file, kind, most_bytes)
    except FileNotFoundError:
        return kind()
    except (OSError, ValueError) as error:
        aside = put_aside(file)
        log.warning("%s in %s: passed over and kept as %s, %s", label, file, aside, error)
        lost(aside)
        return kind()


def put_aside(file: Path) -> Path:
    """Rename a damaged file so that the next one written does not replace it; return its new place."""
    aside = file.with_suffix(".damaged")
    with suppress(OSError):
        file.replace(aside)
        return aside
    return file
