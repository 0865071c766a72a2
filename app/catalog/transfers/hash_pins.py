"""Pins the hashes of downloads that are not in the catalog, as the household accepted them on the first download.

Later downloads on any machine of the household request the same commit and check the same hashes. Only the first
download has to trust the hub.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from app.catalog.files import write_whole
from app.catalog.gguf.gguf_file import part_names
from app.catalog.hub.hub_address import check_file_names
from app.catalog.transfers.download_records import PartFacts, Record, joint_hash
from app.core.errors import BadInput, Damaged
from app.decoding import decode

log = logging.getLogger(__name__)

MOST_PINS = 10_000
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """The origin and the hashes of one version of a model, as first downloaded."""

    repository: Annotated[str, Meta(min_length=3, max_length=200)]
    file: Annotated[str, Meta(min_length=1, max_length=200)]  # the first part if the model is split
    revision: Annotated[str, Meta(min_length=1, max_length=100)]
    sha256: Hash  # of the file; see `joint_hash` for a split model
    parts: Annotated[tuple[PartFacts, ...], Meta(max_length=1000)] = ()
    total_bytes: Annotated[int, Meta(ge=1, le=1 << 50)]
    taken: float  # Unix time of the download

    @property
    def is_sound(self) -> bool:
        """Return whether the names are valid and the hashes are consistent."""
        try:
            check_file_names(self.repository, self.file, self.revision)
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
    """The pins stored on this machine, in a small JSON file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, repository: str, file: str) -> Pin | None:
        """Return the pin of a file on the hub, or None. Reads the disk. Raises Damaged."""
        matches = (pin for pin in self._all() if (pin.repository, pin.file) == (repository, file))
        return next(matches, None)

    def store(self, pin: Pin) -> None:
        """Store a pin unless its file already has one. Raises AppError if it cannot be written to disk."""
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
            log.warning("the pinned hashes in %s cannot be read: %s", self._path, error)
            raise Damaged("pins_damaged", path=str(self._path)) from None
        return [pin for pin in pins if pin.is_sound]
