"""What is known of each download, kept on the disk: a restarted node goes on at the true value."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import structs

from app.catalog.files import disk_error, write_whole
from app.catalog.hub_address import checked
from app.catalog.part import part_bytes
from app.core.errors import BadInput, Fact, Reason
from app.core.reasons import said

log = logging.getLogger(__name__)

Standing = Literal["going", "paused", "done", "failed"]
_ID = re.compile(r"[0-9a-f]{16}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A download as it is to be continued."""

    id: str
    repository: str
    file: str
    revision: str
    name: str  # on the shelf, once it is whole
    source: str  # the hub's host
    started: float
    standing: Standing = "going"
    total_bytes: int | None = None
    sha256: str | None = None
    hash_from: Literal["catalogue", "server"] | None = None
    code: str | None = None  # of the sentence why it failed
    facts: dict[str, Fact] = {}
    model: str | None = None  # its name on the shelf


def id_of(repository: str, file: str) -> str:
    return hashlib.sha256(f"{repository}/{file}".encode()).hexdigest()[:16]


class Book:
    """The folder of downloads: a small JSON file and a part for each, and the whole files by hash."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def all(self) -> Iterator[Record]:
        """Every record that can be read, the oldest first."""
        found = [self._read(path) for path in self.folder.glob("*.json")]
        yield from sorted((one for one in found if one), key=lambda one: (one.started, one.id))

    def make_folder(self) -> None:
        """Raises AppError where the disk does not take it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(self.folder, error, 0) from error

    def write(self, record: Record) -> None:
        """Keep it. Raises AppError where the disk does not take it."""
        self.make_folder()
        write_whole(self._path(record.id), msgspec.json.encode(record))

    def remove(self, download_id: str) -> int:
        """Delete a record and its part; how many bytes that freed."""
        part = self.part(download_id)
        try:
            freed = part.stat().st_size
            part.unlink()
        except OSError:
            freed = 0
        self._path(download_id).unlink(missing_ok=True)
        return freed

    def part(self, download_id: str) -> Path:
        return self.folder / f"{download_id}.part"

    def whole(self, sha256: str) -> Path:
        """Where a whole file belongs: names from outside never become names here."""
        return self.folder / f"{sha256}.gguf"

    def done_bytes(self, record: Record) -> int:
        """How much of a download is really on the disk."""
        whole = part_bytes(self.whole(record.sha256)) if record.sha256 else 0
        return whole or part_bytes(self.part(record.id))

    def sha256_of(self, path: Path) -> str | None:
        """The hash of a whole file of this folder; None for any other file."""
        ours = path.parent == self.folder and path.suffix == ".gguf"
        return path.stem if ours and _SHA256.fullmatch(path.stem) else None

    def _path(self, download_id: str) -> Path:
        return self.folder / f"{download_id}.json"

    def _read(self, path: Path) -> Record | None:
        try:
            record = msgspec.json.decode(path.read_bytes(), type=Record)
            checked(record.repository, record.file, record.revision)
        except (OSError, msgspec.DecodeError, BadInput):
            log.warning("the download %s cannot be read", path)
            return None
        odd = record.sha256 is not None and not _SHA256.fullmatch(record.sha256)
        if odd or record.id != path.stem or not _ID.fullmatch(record.id):
            log.warning("the download %s is odd", path)
            return None
        return record if _can_be_said(record) else structs.replace(record, code=None, facts={})


def _can_be_said(record: Record) -> bool:
    """Whether its error, maybe of another version of the app, has a sentence here."""
    try:
        return record.code is None or bool(said(Reason(record.code, record.facts)))
    except (KeyError, IndexError, ValueError, TypeError):
        return False
