"""Pins of downloads whose hash could not be looked up: the bytes that a household accepted on the first download.

Later downloads, here and on the household's other machines, request the same commit and check the same hashes. The
first download had to trust the hub; later ones need not.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from app.catalog.files import write_whole
from app.catalog.gguf.gguf_file import part_names
from app.catalog.hub.hub_address import checked
from app.catalog.transfers.download_records import PartFacts, Record, joint_hash
from app.core.errors import BadInput, Damaged
from app.decoding import decode

log = logging.getLogger(__name__)

MOST_PINS = 10_000
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """The pin of the files of one version: their origin and their hashes."""

    repository: Annotated[str, Meta(min_length=3, max_length=200)]
    file: Annotated[str, Meta(min_length=1, max_length=200)]  # the first one if there are several
    revision: Annotated[str, Meta(min_length=1, max_length=100)]
    sha256: Hash  # of the file; for several files see `joint_hash`
    parts: Annotated[tuple[PartFacts, ...], Meta(max_length=1000)] = ()
    total_bytes: Annotated[int, Meta(ge=1, le=1 << 50)]
    taken: float  # time of the download, in seconds since 1970

    @property
    def is_sound(self) -> bool:
        """Return whether its names are valid and its hashes are consistent."""
        try:
            checked(self.repository, self.file, self.revision)
        except BadInput:
            return False
        n = len(part_names(self.file))
        if n == 1:
            return not self.parts
        return len(self.parts) == n and self.sha256 == joint_hash(part.sha256 for part in self.parts)


def pin_of(record: Record, total_bytes: int, now: float) -> Pin | None:
    """Return the pin of a finished download, or None if its hash is unknown."""
    if record.sha256 is None:
        return None
    return Pin(
        repository=record.repository,
        file=record.file,
        revision=record.revision,
        sha256=record.sha256,
        parts=record.parts,
        total_bytes=total_bytes,
        taken=now,
    )


class Pins:
    """The pins stored on one machine, in a small JSON file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, repository: str, file: str) -> Pin | None:
        """Return the pin of a file, if any. Reads the disk. Raises Damaged."""
        matches = (pin for pin in self._all() if (pin.repository, pin.file) == (repository, file))
        return next(matches, None)

    def keep(self, pin: Pin) -> None:
        """Store a pin unless the file already has one. Raises AppError if it cannot be written to disk."""
        known = self._all()
        if any((known_pin.repository, known_pin.file) == (pin.repository, pin.file) for known_pin in known):
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, msgspec.json.encode([*known, pin][-MOST_PINS:]))

    def _all(self) -> list[Pin]:
        try:
            pins = decode(self._path.read_bytes(), list[Pin])
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            log.warning("the pins of models in %s cannot be read: %s", self._path, error)
            raise Damaged("pins_damaged", path=str(self._path)) from None
        return [pin for pin in pins if pin.is_sound]
