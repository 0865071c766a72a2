"""Writing an engine pack as an archive for another computer. The same pack always produces the same bytes."""

from __future__ import annotations

import errno
import gzip
import io
import os
import secrets
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from app.machine.engine_packs.manifest import MANIFEST
from app.machine.engine_packs.pack_reader import read_manifest
from app.machine.paths import sync_folder

SUFFIX = ".tar.gz"
PART = ".part"
LEVEL = 6  # libraries of a gigabyte take minutes at level 9, and are hardly smaller


def write_archive(pack: Path, place: Path, name: str, is_stopped: Callable[[], bool] = lambda: False) -> Path:
    """Write the files of a pack into the archive `place`, below a folder `name`, and return `place`.

    The archive has a temporary name until it is complete and on disk. Files in the pack's folder that do not belong to
    the pack are left out. is_stopped: called often; writing stops with an error once it returns True.
    Raises OSError, and AppError if the manifest cannot be read.
    """
    # the manifest first, so that a reader knows what follows
    paths = [MANIFEST, *sorted(file.path for file in read_manifest(pack, pack.name).files)]
    part = place.with_name(f"{place.name}.{secrets.token_hex(4)}{PART}")
    part.touch(exist_ok=False)  # nobody else's file
    try:
        with part.open("wb") as raw:
            with (
                gzip.GzipFile("", "wb", compresslevel=LEVEL, fileobj=raw, mtime=0) as packed,
                tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
            ):
                for path in paths:
                    _add(tar, pack / path, f"{name}/{path}", is_stopped)
            raw.flush()
            os.fsync(raw.fileno())
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(place.parent)
    return place


def _add(tar: tarfile.TarFile, file: Path, path: str, is_stopped: Callable[[], bool]) -> None:
    """Add a file without attributes that depend on this computer: its owner, permissions and times."""
    member = tarfile.TarInfo(path)
    member.size, member.mode, member.mtime = file.stat().st_size, 0o644, 0
    with file.open("rb") as content:
        tar.addfile(member, _Stoppable(content, is_stopped))


class _Stoppable(io.RawIOBase):
    """A file whose reading can be stopped from another thread."""

    def __init__(self, content: BinaryIO, is_stopped: Callable[[], bool]) -> None:
        self._content, self._is_stopped = content, is_stopped

    def read(self, n_bytes: int = -1) -> bytes:
        if self._is_stopped():
            raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))
        return self._content.read(n_bytes)
