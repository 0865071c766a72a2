"""The partial file of a download on the disk: hashed while it is written, and again when it is resumed."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from app.catalog.files import CHUNK_BYTES, Disk, disk_error, sync_folder
from app.core.errors import Damaged
from app.core.reasons import os_cause


class Part:
    """A `.part` file. Its methods block; one at a time."""

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self.path = path
        self._disk = disk or Disk()
        self._stop = threading.Event()
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self.n_bytes = 0  # that are written and hashed

    def take_up(self, tell: Callable[[], None] = lambda: None) -> None:
        """Open the file, creating it if needed, and hash what is there. `stop` ends it early."""
        self.close()
        self._stop.clear()
        self._hash, self.n_bytes = hashlib.sha256(), 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            self._file = os.fdopen(handle, "r+b", buffering=0)
            while not self._stop.is_set() and (chunk := self._file.read(CHUNK_BYTES)):
                self._hash.update(chunk)
                self.n_bytes += len(chunk)
                tell()
        except OSError as error:
            self.close()
            raise Damaged("download_stopped", why=os_cause(error)) from error

    def write(self, data: bytes, total_bytes: int) -> None:
        """Append and hash. Raises AppError where the disk is full or does not work."""
        assert self._file is not None
        try:
            self._disk.write(self._file, memoryview(data))
        except OSError as error:
            self._cut_back()
            raise disk_error(self.path.parent, error, total_bytes - self.n_bytes) from error
        self._hash.update(data)
        self.n_bytes += len(data)

    def begin_again(self) -> None:
        """Forget what is there."""
        assert self._file is not None
        self._hash, self.n_bytes = hashlib.sha256(), 0
        self._cut_back()

    def sha256(self) -> str:
        return self._hash.hexdigest()

    def finish(self, final: Path) -> None:
        """Make it the whole file: on the disk for good, then under its name."""
        assert self._file is not None
        try:
            self._disk.sync(self._file)
            self.close()
            self.path.replace(final)
            sync_folder(final.parent)
        except OSError as error:
            raise disk_error(final.parent, error, self.n_bytes) from error

    def stop(self) -> None:
        """End `take_up` soon. Safe to call from any thread."""
        self._stop.set()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _cut_back(self) -> None:
        """Drop bytes that were not hashed."""
        assert self._file is not None
        self._file.truncate(self.n_bytes)
        self._file.seek(self.n_bytes)


def part_bytes(path: Path) -> int:
    """Return how much of a download is on the disk."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
