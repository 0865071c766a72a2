"""Stores the records of downloads on disk. A node resumes its downloads from them after a restart."""

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
from app.catalog.hub.hub_address import check_file_names
from app.core.errors import BadInput, Fact, Reason
from app.core.reasons import has_sentence, os_cause
from app.decoding import decode

log = logging.getLogger(__name__)

DownloadState = Literal["going", "paused", "done", "failed"]
_ID = re.compile(r"[0-9a-f]{16}")
_STEM = "model"  # prefix of the names of a split model's files
_SHA256 = re.compile(r"[0-9a-f]{64}")


class PartFacts(msgspec.Struct, frozen=True):
    """The known facts about one part of a split model."""

    total_bytes: int | None = None
    sha256: str | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The stored state of a download, from which it can be resumed."""

    id: str
    repository: str
    file: str  # the first part if the model is split
    revision: str
    name: str  # its name on the shelf once complete
    source: str  # the hub's host, or the machine from which the file is copied
    started: float
    standing: DownloadState = "going"
    total_bytes: int | None = None
    sha256: str | None = None  # of the file; see `joint_hash` for a split model
    hash_from: Literal["catalog", "server", "household"] | None = None
    parts: tuple[PartFacts, ...] = ()  # the parts of a split model, otherwise empty
    code: str | None = None  # reason code of its failure
    facts: dict[str, Fact] = {}
    model: str | None = None  # its name on the shelf
    machine: str | None = None  # id of the machine from which the file is copied, for which `sha256` must be known
    place: float | None = None  # its rank in the list, once a person moved any; None for the time of its start

    @property
    def rank(self) -> tuple[float, str]:
        """The key by which downloads are ordered."""
        return self.started if self.place is None else self.place, self.id


def id_of(repository: str, file: str) -> str:
    return hashlib.sha256(f"{repository}/{file}".encode()).hexdigest()[:16]


def joint_hash(hashes: Iterable[str | None]) -> str | None:
    """Return the hash of a split model, which is the SHA-256 of its parts' hashes, or None if any of these is
    unknown."""
    known = list(hashes)
    if not known or None in known:
        return None
    return hashlib.sha256("\n".join(str(part_hash) for part_hash in known).encode()).hexdigest()


class DownloadFolders(Protocol):
    """The folders that contain models, implemented in machine/models_folders.py."""

    own: Path  # inside the home; always contains the records of downloads
    now: Path  # the folder for new files
    all: tuple[Path, ...]
    unreachable: dict[Path, Reason]  # folders that could not be reached at the last check

    def folder_of(self, path: Path, /) -> Path | None: ...

    def folder_for(self, name: str, /) -> Path: ...

    def ensure(self, folder: Path, /) -> None: ...


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A complete or partial model that this app has stored in a folder."""

    path: Path  # a file, or the folder of a split model
    n_bytes: int
    is_part: bool


class DownloadRecords:
    """The records of all downloads, and the paths of their partial and complete files. Each record is a small JSON
    file.

    A split model has its own folder, named by the download's id at first and by the model's hash once complete.
    """

    def __init__(self, places: DownloadFolders) -> None:
        self.folder, self.places = places.own, places

    def all(self) -> Iterator[Record]:
        """Yield every readable record, in the order of the list."""
        records = [self._read(path) for path in self.folder.glob("*.json")]
        yield from sorted((record for record in records if record), key=lambda record: record.rank)

    def ensure(self, folder: Path) -> None:
        """Create a folder unless it exists. Raises AppError if it is unreachable or cannot be written to."""
        try:
            self.places.ensure(folder)
        except OSError as error:
            raise disk_error(folder, error, 0) from error

    def folder_of(self, record: Record) -> Path:
        """Return the folder that contains, or will contain, the files of a download."""
        return (self._coming(record.id) if record.parts else self.partial_path(record.id)).parent

    def write(self, record: Record) -> None:
        """Store a record. Raises AppError if it cannot be written to disk."""
        self.ensure(self.folder)
        write_whole(self._path(record.id), msgspec.json.encode(record))

    def remove(self, download_id: str) -> int:
        """Delete a record and its partial files, and return the number of bytes freed. Raises AppError."""
        part, several = self.partial_path(download_id), self._coming(download_id)
        freed = part_bytes(part) + _folder_bytes(several)
        try:
            if part.exists():  # on a read-only disk, deleting even a missing file fails
                part.unlink()
            shutil.rmtree(several, ignore_errors=True)
            self._path(download_id).unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(part.parent, error, 0) from error
        return freed

    def partial_path(self, download_id: str) -> Path:
        return self._path_of(f"{download_id}.part")

    def part_path(self, record: Record, number: int) -> Path:
        """Return the path where a downloaded part is stored until all parts are complete."""
        return self._coming(record.id) / _names(len(record.parts))[number]

    def assemble(self, record: Record) -> Path:
        """Move the parts of a complete download to their final folder, and return the path of the first one. Raises
        AppError."""
        final = self.final_path(record)
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

    def complete_path(self, sha256: str) -> Path:
        """Return the path of the complete file with this hash. The path never contains a name from an untrusted
        source."""
        return self._path_of(f"{sha256}.gguf")

    def final_path(self, record: Record) -> Path:
        """Return the final path of a download's file, or of its first part."""
        sha256 = record.sha256 or ""
        if not record.parts:
            return self.complete_path(sha256)
        return self._path_of(sha256) / _names(len(record.parts))[0]

    def done_bytes(self, record: Record) -> int:
        """Return how many bytes of a download are on disk."""
        whole = whole_bytes(self.final_path(record)) if record.sha256 else 0
        if whole or not record.parts:
            return whole or part_bytes(self.partial_path(record.id))
        return _folder_bytes(self._coming(record.id))

    def sha256_of(self, path: Path) -> str | None:
        """Return the hash of a complete model that this app has stored, or None for any other file."""
        if path.parent.parent in self.places.all and path.name.startswith(f"{_STEM}-"):
            return path.parent.name if _SHA256.fullmatch(path.parent.name) else None
        ours = path.parent in self.places.all and path.suffix == ".gguf"
        return path.stem if ours and _SHA256.fullmatch(path.stem) else None

    def in_other_folders(self) -> list[StoredModel]:
        """Return the models in all reachable folders except the one for new files, incomplete ones first."""
        known = self.places
        near = [folder for folder in known.all if folder != known.now and folder not in known.unreachable]
        entries = [held for folder in near for held in stored_models(folder)]
        return sorted(entries, key=lambda entry: (not entry.is_part, entry.n_bytes, entry.path))

    def _coming(self, download_id: str) -> Path:
        return self._path_of(f"{download_id}.parts")

    def _path_of(self, name: str) -> Path:
        return self.places.folder_for(name) / name

    def _path(self, download_id: str) -> Path:
        return self.folder / f"{download_id}.json"

    def _read(self, path: Path) -> Record | None:
        try:
            # Earlier builds used the British spelling.
            stored = path.read_bytes().replace(b'"hash_from":"catalogue"', b'"hash_from":"catalog"')
            record = decode(stored, Record)
            check_file_names(record.repository, record.file, record.revision)
        except (OSError, ValueError, BadInput):
            log.warning("the download record %s cannot be read", path)
            return None
        hashes = (record.sha256, *(part.sha256 for part in record.parts), record.machine)
        odd = any(known_hash is not None and not _SHA256.fullmatch(known_hash) for known_hash in hashes)
        odd = odd or (record.machine is not None and record.sha256 is None)
        odd = odd or len(record.parts or (None,)) != len(part_names(record.file))
        if odd or record.id != path.stem or not _ID.fullmatch(record.id):
            log.warning("the download record %s is inconsistent", path)
            return None
        return record if _can_be_said(record) else structs.replace(record, code=None, facts={})


def stored_models(folder: Path) -> Iterator[StoredModel]:
    """Yield the models that this app has stored in a folder. They are recognized by their file names.

    Other files are ignored, and an unreadable folder counts as empty.
    """
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
    """Return the size of a complete model including all its parts, or 0 if any part is missing."""
    sizes = [part_bytes(part_path) for part_path in part_paths(path)]
    return sum(sizes) if all(sizes) else 0


def delete_model(path: Path) -> int:
    """Delete all parts of a model that this app has stored, and return the number of bytes freed.

    Raises BadInput if a part cannot be deleted.
    """
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
    """Return whether this version has a sentence for the record's error, which a different version may have stored."""
    return record.code is None or has_sentence(Reason(record.code, record.facts))
