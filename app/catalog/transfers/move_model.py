"""Moves a model to another folder by renaming it or, if the folder is on another disk, by copying and verifying it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import BinaryIO

from app.catalog.files import CHUNK_BYTES, Disk, OnBytes, disk_error, hash_range, sync_folder
from app.core.errors import AppError, BadInput, Damaged
from app.core.reasons import os_cause

COMING = ".moving"  # the suffix of incomplete copies
_OURS = re.compile(r"([0-9a-f]{64}(\.gguf)?|[0-9a-f]{16}\.parts?)\.moving")


def move_path(source: Path, folder: Path, disk: Disk, tell: OnBytes) -> None:
    """Move a file, or a folder of files, to `folder`. If this is on another disk, only copy it; the caller then
    deletes the source.

    Incomplete copies from an earlier attempt are resumed. `tell` counts every byte twice: when it is copied and
    when it is read back. Raises AppError, in which case the source is unchanged.
    """
    target = folder / source.name
    try:
        if not target.exists():
            disk.rename(source, target)
            sync_folder(folder)
            return
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise _broke(folder, source, error) from error
    if target.exists() and _same(source, target):
        return  # an earlier move was interrupted before the source was deleted
    _copy(source, target, disk, tell)


def delete_path(path: Path) -> None:
    """Delete a file or a folder of files. Raises OSError."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sweep_unfinished(folder: Path) -> None:
    """Delete incomplete copies, ignoring errors."""
    with contextlib.suppress(OSError):
        for path in folder.glob(f"*{COMING}"):
            if _OURS.fullmatch(path.name):
                delete_path(path)


def _copy(source: Path, target: Path, disk: Disk, tell: OnBytes) -> None:
    coming = target.with_name(target.name + COMING)
    try:
        if source.is_dir():
            coming.mkdir(exist_ok=True)
        for file, to in _files(source, coming):
            _copy_file(file, to, disk, tell)
        delete_path(target)
        coming.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise _broke(target.parent, source, error) from error


def _copy_file(source: Path, coming: Path, disk: Disk, tell: OnBytes) -> None:
    """Copy one file and verify the copy. If a resumed copy is wrong, start over once. Raises OSError and Damaged."""
    for _ in range(2):
        went_on = coming.exists() and coming.stat().st_size > 0
        with source.open("rb", buffering=0) as file:
            source_hash = _poured(file, coming, disk, tell)
        with coming.open("rb", buffering=0) as copied:
            _from_the_disk(copied)
            same = hash_range(copied, 0, source.stat().st_size + 1, tell) == source_hash
        if same:
            seen = source.stat()
            os.utime(coming, ns=(seen.st_atime_ns, seen.st_mtime_ns))
            return
        coming.unlink()
        if not went_on:
            break
    raise Damaged("models_move_damaged", folder=str(coming.parent))


def _poured(source: BinaryIO, coming: Path, disk: Disk, tell: OnBytes) -> str:
    """Append the missing bytes to the copy, and return the hash of the whole source. Raises OSError."""
    digest, done = hashlib.sha256(), 0
    handle = os.open(coming, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(handle, "r+b", buffering=0) as file:
        there = file.seek(0, os.SEEK_END)
        while chunk := source.read(CHUNK_BYTES):
            digest.update(chunk)
            if done + len(chunk) > there:
                disk.write(file, memoryview(chunk)[max(0, there - done) :])
            done += len(chunk)
            tell(len(chunk))
        file.truncate(done)
        disk.sync(file)
    return digest.hexdigest()


def _same(source: Path, target: Path) -> bool:
    """Return whether the source and the target contain the same bytes. Raises AppError."""
    try:
        pairs = list(_files(source, target))
        if any(not b.is_file() or a.stat().st_size != b.stat().st_size for a, b in pairs):
            return False
        return all(_hash(a) == _hash(b) for a, b in pairs)
    except OSError as error:
        raise _broke(target.parent, source, error) from error


def _files(source: Path, target: Path) -> list[tuple[Path, Path]]:
    if source.is_dir():
        return [(file, target / file.name) for file in sorted(source.iterdir())]
    return [(source, target)]


def _hash(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hash_range(file, 0, path.stat().st_size, lambda _: None)


def _from_the_disk(file: BinaryIO) -> None:
    """Drop a file from the page cache if the system supports it. The next read then comes from the disk."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _broke(folder: Path, source: Path, error: OSError) -> AppError:
    """Return the error for a failed move. It names a full disk, or else the file and the system's reason."""
    disk_failure = disk_error(folder, error, _size(source))
    if disk_failure.reason.code == "disk_full":
        return disk_failure
    return BadInput("models_move_failed", path=str(error.filename or source), why=os_cause(error))


def _size(source: Path) -> int:
    try:
        return sum(file.stat().st_size for file, _ in _files(source, source))
    except OSError:
        return 0
