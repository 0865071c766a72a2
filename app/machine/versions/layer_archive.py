"""Archives (.tar.zst) of a version's layers.

The same folder always gives the same bytes, and no header is trusted.

Only regular files, and links to a file in the same folder, are unpacked; anything else stops the unpacking. The sizes
are limited to those stated in the signed release.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
import threading
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, cast

from app.core.errors import Damaged, Refused
from app.machine.versions.tree_hash import files_in

CHUNK_BYTES = 1 << 20
MAX_FILES = 100_000
MAX_LAYER_BYTES = 8 << 30
MAX_PATH_CHARACTERS = 240
_PART = re.compile(r"[A-Za-z0-9_+.@()\[\]{}=,~&$#! -][A-Za-z0-9_+.@()\[\]{}=,~&$#! -]*")
# Windows opens devices under these names, in any folder and with any suffix.
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_LEVEL = 13  # higher ones take minutes for a few percent


def write_archive(folder: Path, target: Path, seconds: int) -> None:
    """Pack a folder into an archive. Raises OSError.

    seconds: the modification time of all files.
    """
    from backports import zstd

    parameter = zstd.CompressionParameter
    options: dict[int, int] = {parameter.compression_level: _LEVEL, parameter.checksum_flag: 1}
    with (
        target.open("wb") as raw,
        zstd.ZstdFile(raw, "wb", options=options) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for path in files_in(folder):
            member = tarfile.TarInfo(path.relative_to(folder).as_posix())
            member.mtime = seconds
            if path.is_symlink():
                member.type, member.linkname = tarfile.SYMTYPE, os.readlink(path)
                archive.addfile(member)
                continue
            member.mode, member.size = 0o755 if path.stat().st_mode & 0o111 else 0o644, path.stat().st_size
            with path.open("rb") as file:
                archive.addfile(member, file)


def unpack_archive(source: Path, folder: Path, layer: str, n_bytes: int, stop: threading.Event | None = None) -> None:
    """Unpack a layer's archive into a new folder. Raises Refused, Damaged or OSError.

    n_bytes: the total size of its files, as stated by the release. stop: once it is set, Canceled is raised.
    """
    from backports import zstd

    if n_bytes > MAX_LAYER_BYTES:
        raise Refused("update_too_large", layer=layer)
    folder.mkdir(parents=True, exist_ok=True)
    done = n_files = 0
    try:
        with (
            source.open("rb") as raw,
            zstd.ZstdFile(raw, "rb") as packed,
            tarfile.open(fileobj=cast("IO[bytes]", _Bounded(packed)), mode="r:") as archive,
        ):
            for member in archive:
                n_files += 1
                done += member.size if member.isreg() else 0
                if n_files > MAX_FILES or done > n_bytes:
                    raise Refused("update_too_large", layer=layer)
                _write_member(archive, member, folder, layer)
                if stop is not None and stop.is_set():
                    raise Canceled
                archive.members = []  # type: ignore[attr-defined]  # otherwise it would keep one object for each file
    except (tarfile.TarError, zstd.ZstdError, EOFError, UnicodeError) as error:
        raise Damaged("update_layer_damaged", layer=layer) from error


def _write_member(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, layer: str) -> None:
    """Write one file or link.

    Raises Refused if it could lie outside the folder, or if it is neither a file nor a link.
    """
    if not is_safe(member.name):
        raise Refused("update_unsafe", layer=layer, file=_shown(member.name))
    path = folder / member.name
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        if "/" in member.linkname or not is_safe(member.linkname):
            raise Refused("update_unsafe", layer=layer, file=_shown(member.name))
        path.symlink_to(member.linkname)
        return
    content = archive.extractfile(member) if member.isreg() else None
    if content is None:
        raise Refused("update_unsafe", layer=layer, file=_shown(member.name))
    mode = 0o755 if member.mode & 0o111 else 0o644
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    with os.fdopen(handle, "wb") as file:
        if os.name == "posix":
            os.fchmod(file.fileno(), mode)  # whatever the user's mask is
        while chunk := content.read(CHUNK_BYTES):
            file.write(chunk)
    os.utime(path, (member.mtime, member.mtime))


def is_safe(name: str) -> bool:
    """Return whether a relative path stays inside its folder on every operating system."""
    parts = name.split("/")
    return (
        len(name) <= MAX_PATH_CHARACTERS
        and not PurePosixPath(name).is_absolute()
        and all(_PART.fullmatch(part) and not _DEVICE.fullmatch(part) for part in parts)
        and not any(part in (".", "..") or part.endswith((".", " ")) for part in parts)
    )


def _shown(name: str) -> str:
    """Return a name without control characters, for use in an error message."""
    return "".join(sign if sign.isprintable() else "?" for sign in name)[:MAX_PATH_CHARACTERS]


class Canceled(Exception):
    """The user canceled the update."""


class Readable(Protocol):
    """A compressed archive that is decompressed while it is read."""

    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int = ..., /) -> int: ...
    def tell(self) -> int: ...


class _Bounded(io.RawIOBase):
    """A decompressed archive that rejects large reads, because a header in the archive may claim any length."""

    def __init__(self, content: Readable) -> None:
        self._content = content

    def read(self, n_bytes: int = -1) -> bytes:
        if not 0 <= n_bytes <= 16 * CHUNK_BYTES:
            raise tarfile.ReadError("a header is too long")
        return self._content.read(n_bytes)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._content.seek(offset, whence)

    def tell(self) -> int:
        return self._content.tell()
