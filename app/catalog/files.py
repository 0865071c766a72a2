"""Works with files: hashes ranges, writes files atomically, and converts disk errors into errors that users
understand."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from app.core.errors import AppError, BadInput, DoesNotFit
from app.core.reasons import os_cause

CHUNK_BYTES = 1 << 20
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

OnBytes = Callable[[int], None]  # called with the number of bytes processed since the last call


class Disk:
    """The disk operations used for stage files, downloads and moves. Tests replace them with failing ones."""

    def free_bytes(self, folder: Path) -> int:
        return shutil.disk_usage(folder).free

    def write(self, file: BinaryIO, data: memoryview) -> None:
        """Write all of the data. Raises OSError."""
        while data:
            data = data[file.write(data) :]

    def sync(self, file: BinaryIO) -> None:
        os.fsync(file.fileno())

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file. Raises OSError, with EXDEV if the source and the target are on different disks."""
        source.replace(target)


def chunks(file: BinaryIO, offset: int, n_bytes: int) -> Iterator[bytes]:
    """Yield a range of an open file in chunks. If the file ends early, so does the range."""
    file.seek(offset)
    while n_bytes > 0 and (chunk := file.read(min(n_bytes, CHUNK_BYTES))):
        n_bytes -= len(chunk)
        yield chunk


def hash_range(file: BinaryIO, offset: int, n_bytes: int, tell: OnBytes) -> str:
    """Return the SHA-256 of a range in hex. If the file ends early, only the existing bytes are hashed."""
    digest = hashlib.sha256()
    for chunk in chunks(file, offset, n_bytes):
        digest.update(chunk)
        tell(len(chunk))
    return digest.hexdigest()


def write_whole(path: Path, data: bytes) -> None:
    """Replace a small file atomically, so that a reader sees either the old or the new contents. Raises AppError."""
    part = path.with_name(path.name + ".new")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise disk_error(path.parent, error, len(data)) from error


def sync_folder(folder: Path) -> None:
    """Sync a folder if the system supports it, so that a rename survives a power failure."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def disk_error(folder: Path, error: OSError, needed_bytes: int) -> AppError:
    """Return the error for a failed write: DoesNotFit if the disk is full, otherwise BadInput with the system's
    reason."""
    if error.errno in NO_SPACE:
        free = 0
        with contextlib.suppress(OSError):
            free = shutil.disk_usage(folder).free
        return DoesNotFit("disk_full", folder=str(folder), needed_bytes=needed_bytes, free_bytes=free)
    return BadInput("disk_failed", folder=str(folder), why=os_cause(error))


def part_bytes(path: Path) -> int:
    """Return the size of a file, or 0 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
