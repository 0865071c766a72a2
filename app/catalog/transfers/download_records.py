"""Records of downloads on the disk, from which a restarted node continues."""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import msgspec
from msgspec import structs

from app.catalog.files import disk_error, part_bytes, sync_folder, write_whole
from app.catalog.gguf.gguf_file import part_names, part_paths
from app.catalog.hub.hub_address import checked
from app.core.errors import BadInput, Fact, Reason
from app.core.reasons import can_be_said, os_cause
from app.decoding import decode

log = logging.getLogger(__name__)

DownloadState = Literal["going", "paused", "done", "failed"]
_ID = re.compile(r"[0-9a-f]{16}")
_STEM = "model"  # prefix of the file names of a model in several files
_SHA256 = re.compile(r"[0-9a-f]{64}")


class PartFacts(msgspec.Struct, frozen=True):
    """The facts about one of several files."""

    total_bytes: int | None = None
    sha256: str | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a download, from which it can be continued."""

    id: str
    repository: str
    file: str  # the first one if there are several
    revision: str
    name: str  # on the shelf, once complete
    source: str  # the hub's host, or the name of the machine that provides a copy
    started: float
    standing: DownloadState = "going"
    total_bytes: int | None = None
    sha256: str | None = None  # of the file; for several files see `joint_hash`
    hash_from: Literal["catalog", "server", "household"] | None = None
    parts: tuple[PartFacts, ...] = ()  # each file, if the model has several
    code: str | None = None  # code of the sentence about its failure
    facts: dict[str, Fact] = {}
    model: str | None = None  # its name on the shelf
    machine: str | None = None  # ID of the machine that provides a copy; the hash is then known


def id_of(repository: str, file: str) -> str:
    return hashlib.sha256(f"{repository}/{file}".encode()).hexdigest()[:16]


def joint_hash(hashes: Iterable[str | None]) -> str | None:
    """Return the hash of a model in several files: the SHA-256 of all their hashes, or None if one is still unknown."""
    known = list(hashes)
    if not known or None in known:
        return None
    return hashlib.sha256("\n".join(str(part_hash) for part_hash in known).encode()).hexdigest()


class DownloadFolders(Protocol):
    """The folders that contain models, implemented in machine/models_folders.py."""

    own: Path  # inside the home; always contains the records of downloads
    now: Path  # receives new files
    all: tuple[Path, ...]
    unreachable: dict[Path, Reason]  # folders that could not be reached at the last check

    def of(self, path: Path, /) -> Path | None: ...

    def place_of(self, name: str, /) -> Path: ...

    def ensure(self, folder: Path, /) -> None: ...


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A complete or partial model of ours in a folder that receives no new ones."""

    path: Path  # the file, or the folder if there are several
    n_bytes: int
    is_part: bool


class DownloadRecords:
    """The records of downloads, each a small JSON file, with their partial files, and the complete files by hash.

    A model in several files has a folder, named by its id during the download and by its hash afterwards.
    """

    def __init__(self, places: DownloadFolders) -> None:
        self.folder, self.places = places.own, places

    def all(self) -> Iterator[Record]:
        """Yield every readable record, oldest first."""
        records = [self._read(path) for path in self.folder.glob("*.json")]
        yield from sorted((record for record in records if record), key=lambda record: (record.started, record.id))

    def ensure(self, folder: Path) -> None:
        """Ensure that a folder exists. Raises AppError if it is unreachable or cannot be written to."""
        try:
            self.places.ensure(folder)
        except OSError as error:
            raise disk_error(folder, error, 0) from error

    def folder_of(self, record: Record) -> Path:
        """Return the folder that contains, or will contain, the files of a download."""
        return (self._coming(record.id) if record.parts else self.part(record.id)).parent

    def write(self, record: Record) -> None:
        """Store a record. Raises AppError if it cannot be written to disk."""
        self.ensure(self.folder)
        write_whole(self._path(record.id), msgspec.json.encode(record))

    def remove(self, download_id: str) -> int:
        """Delete a record and its partial file, and return the number of bytes freed. Raises AppError."""
        part, several = self.part(download_id), self._coming(download_id)
        freed = part_bytes(part) + _folder_bytes(several)
        try:
            if part.exists():  # on a read-only disk, deleting even a missing file fails
                part.unlink()
            shutil.rmtree(several, ignore_errors=True)
            self._path(download_id).unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(part.parent, error, 0) from error
        return freed

    def part(self, download_id: str) -> Path:
        return self._path_of(f"{download_id}.part")

    def piece(self, record: Record, number: int) -> Path:
        """Return the path at which a complete part waits for the others."""
        return self._coming(record.id) / _names(len(record.parts))[number]

    def gather(self, record: Record) -> Path:
        """Combine the parts of a complete download into the model, and return the path of the first one. Raises
        AppError."""
        final = self.whole_of(record)
        coming = self._coming(record.id)
        try:
            if whole_bytes(final):  # the same bytes were downloaded under another name
                shutil.rmtree(coming)
                return final
            shutil.rmtree(final.parent, ignore_errors=True)
            final = coming.parent / final.parent.name / final.name  # on the same disk
            coming.replace(final.parent)
            sync_folder(coming.parent)
        except OSError as error:
            raise disk_error(coming.parent, error, 0) from error
        return final

    def whole(self, sha256: str) -> Path:
        """Return the path of a complete file. It never contains a name from outside."""
        return self._path_of(f"{sha256}.gguf")

    def whole_of(self, record: Record) -> Path:
        """Return the path of a download's complete file, or of the first one if it has several."""
        sha256 = record.sha256 or ""
        if not record.parts:
            return self.whole(sha256)
        return self._path_of(sha256) / _names(len(record.parts))[0]

    def done_bytes(self, record: Record) -> int:
        """Return how many bytes of a download are on the disk."""
        whole = whole_bytes(self.whole_of(record)) if record.sha256 else 0
        if whole or not record.parts:
            return whole or part_bytes(self.part(record.id))
        return _folder_bytes(self._coming(record.id))

    def sha256_of(self, path: Path) -> str | None:
        """Return the hash of a complete model in our folders, or None for any other file."""
        if path.parent.parent in self.places.all and path.name.startswith(f"{_STEM}-"):
            return path.parent.name if _SHA256.fullmatch(path.parent.name) else None
        ours = path.parent in self.places.all and path.suffix == ".gguf"
        return path.stem if ours and _SHA256.fullmatch(path.stem) else None

    def elsewhere(self) -> list[StoredModel]:
        """Return the models in reachable folders that receive no new files, incomplete ones first."""
        known = self.places
        near = [folder for folder in known.all if folder != known.now and folder not in known.unreachable]
        entries = [held for folder in near for held in stored_models(folder)]
        return sorted(entries, key=lambda entry: (not entry.is_part, entry.n_bytes, entry.path))

    def _coming(self, download_id: str) -> Path:
        return self._path_of(f"{download_id}.parts")

    def _path_of(self, name: str) -> Path:
        return self.places.place_of(name) / name

    def _path(self, download_id: str) -> Path:
        return self.folder / f"{download_id}.json"

    def _read(self, path: Path) -> Record | None:
        try:
            # Earlier builds spelled the word in the British way.
            stored = path.read_bytes().replace(b'"hash_from":"catalogue"', b'"hash_from":"catalog"')
            record = decode(stored, Record)
            checked(record.repository, record.file, record.revision)
        except (OSError, ValueError, BadInput):
            log.warning("the download %s cannot be read", path)
            return None
        hashes = (record.sha256, *(part.sha256 for part in record.parts), record.machine)
        odd = any(known_hash is not None and not _SHA256.fullmatch(known_hash) for known_hash in hashes)
        odd = odd or (record.machine is not None and record.sha256 is None)
        odd = odd or len(record.parts or (None,)) != len(part_names(record.file))
        if odd or record.id != path.stem or not _ID.fullmatch(record.id):
            log.warning("the download %s is odd", path)
            return None
        return record if _can_be_said(record) else structs.replace(record, code=None, facts={})


def stored_models(folder: Path) -> Iterator[StoredModel]:
    """Yield our models in a folder, recognized by name. Other files are ignored, and an unreadable folder counts as
    empty."""
    try:
        paths = sorted(folder.iterdir())
    except OSError:
        return
    for path in paths:
        is_part = path.suffix in (".part", ".parts")
        name = _ID if is_part else _SHA256
        if name.fullmatch(path.stem) and path.suffix in (".gguf", "", ".part", ".parts"):
            yield StoredModel(path, _folder_bytes(path) if path.is_dir() else part_bytes(path), is_part)


def whole_bytes(path: Path) -> int:
    """Return the size of a complete model, in one file or several, or 0 if part of it is missing."""
    sizes = [part_bytes(part_path) for part_path in part_paths(path)]
    return sum(sizes) if all(sizes) else 0


def delete_model(path: Path) -> int:
    """Delete all files of a model in our folders, and return the number of bytes freed. Raises BadInput if one cannot
    be deleted."""
    freed, paths = 0, part_paths(path)
    for part_path in paths:
        n_bytes = part_bytes(part_path)
        try:
            part_path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise BadInput("model_file_stays", path=str(part_path), why=os_cause(error)) from error
        freed += n_bytes
    if len(paths) > 1:
        shutil.rmtree(path.parent, ignore_errors=True)
    return freed


def _names(n: int) -> tuple[str, ...]:
    return part_names(f"{_STEM}-00001-of-{n:05}.gguf")


def _folder_bytes(folder: Path) -> int:
    try:
        return sum(part_bytes(file) for file in folder.iterdir())
    except OSError:
        return 0


def _can_be_said(record: Record) -> bool:
    """Return whether this version has a sentence for the record's error, which may come from another version."""
    return record.code is None or can_be_said(Reason(record.code, record.facts))
