"""Copying an engine pack from a folder or an archive into a new folder, while checking every byte."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from app.core.errors import AppError, BadInput, Damaged, DoesNotFit, Refused
from app.core.reasons import os_cause
from app.machine.engine_packs.manifest import MANIFEST, MAX_MANIFEST_BYTES, Manifest, PackFile, parse, shown_path
from app.machine.paths import write_atomically

CHUNK_BYTES = 1 << 20
SPARE_BYTES = 64 << 20  # that stay free on the disk
MAX_READ_BYTES = 16 << 20  # in one read: an archive's own headers are never that long
FULL = (errno.ENOSPC, errno.EDQUOT)

Check = Callable[[Manifest], None]


def copy_pack(source: Path, target: Path, check: Check) -> Manifest:
    """Copy a pack into the empty folder `target` and return its manifest.

    check: raises an AppError if the pack cannot be used here. It is called before anything large is read. Raises
    BadInput, Refused, Damaged or DoesNotFit. After an error, `target` may contain an incomplete pack.
    """
    try:
        if source.is_dir():
            return _from_folder(source, target, check)
        return _from_archive(source, target, check)
    except OSError as error:
        if error.errno in FULL:
            raise DoesNotFit("pack_disk_full", pack=shown_path(source.name)) from error
        raise BadInput("pack_unreadable", pack=shown_path(str(source)), why=os_cause(error)) from error
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise Damaged("pack_damaged", pack=shown_path(source.name)) from error


def verify_files(folder: Path, manifest: Manifest, *, hashes: bool = True) -> AppError | None:
    """Return the error for the first file of an installed pack that differs from its manifest, or None."""
    for file in manifest.files:
        path = folder / file.path
        try:
            if path.is_symlink() or not path.is_file() or path.stat().st_size != file.size_bytes:
                return Damaged("pack_incomplete", pack=manifest.name, file=file.path)
            if hashes and _digest(path) != file.sha256:
                return Damaged("pack_wrong_hash", pack=manifest.name, file=file.path)
        except OSError as error:
            return BadInput("pack_unreadable", pack=shown_path(str(path)), why=os_cause(error))
    return None


def read_manifest(folder: Path, where: str) -> Manifest:
    """Read the manifest of a pack in a folder. Raises BadInput, Refused or Damaged."""
    return parse(_manifest_bytes(folder, where), where)


def _manifest_bytes(folder: Path, where: str) -> bytes:
    try:
        with _open_file(folder / MANIFEST) as file:
            return file.read(MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        raise BadInput("pack_no_manifest", pack=where) from None
    except OSError as error:
        raise BadInput("pack_unreadable", pack=where, why=os_cause(error)) from error


def manifest_hash(folder: Path) -> str:
    """Return the SHA-256 of the manifest of a pack in a folder, or "" if it cannot be read.

    The manifest lists the hashes of all other files, so its own hash identifies the content of the whole pack.
    """
    try:
        return _digest(folder / MANIFEST)
    except OSError:
        return ""


def _from_folder(source: Path, target: Path, check: Check) -> Manifest:
    data = _manifest_bytes(source, shown_path(source.name))
    manifest = parse(data, shown_path(source.name))
    check(manifest)
    require_room(target, manifest)
    for file in manifest.files:
        path = source / file.path
        if any(part.is_symlink() for part in (path, *path.parents) if part != source and part.is_relative_to(source)):
            raise Refused("pack_unsafe", pack=manifest.name, file=file.path)
        try:
            with _open_file(path) as content:
                _copy(content, target, file, manifest)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise Damaged("pack_incomplete", pack=manifest.name, file=file.path) from None
    write_atomically(target / MANIFEST, data)
    return manifest


def _from_archive(source: Path, target: Path, check: Check) -> Manifest:
    with _open_file(source) as raw, gzip.GzipFile(fileobj=raw) as unpacked:
        try:
            tar = tarfile.TarFile(fileobj=_Bounded(unpacked), errorlevel=2)
        except (tarfile.ReadError, gzip.BadGzipFile):
            raise BadInput("pack_no_manifest", pack=shown_path(source.name)) from None
        with tar:
            return _from_members(tar, source, target, check)


def _from_members(tar: tarfile.TarFile, source: Path, target: Path, check: Check) -> Manifest:
    """Copy the members of an archive.

    The manifest must come first, so that each later member can be checked against it.
    """
    where = shown_path(source.name)
    first = tar.next()
    if first is not None and first.name.count("/") == 1 and first.name.partition("/")[2] != MANIFEST:
        raise BadInput("pack_order", pack=where)
    if first is None or first.name.partition("/")[2] != MANIFEST or not _is_file(first):
        raise BadInput("pack_no_manifest", pack=where)
    if first.size > MAX_MANIFEST_BYTES:
        raise BadInput("pack_no_manifest", pack=where)
    top = first.name.partition("/")[0]
    data = _content(tar, first).read(MAX_MANIFEST_BYTES + 1)
    manifest = parse(data, where)
    check(manifest)
    require_room(target, manifest)
    expected = manifest.by_path()
    while (member := tar.next()) is not None:
        folder, _, path = member.name.partition("/")
        file = expected.pop(path, None) if folder == top else None
        if file is None or not _is_file(member):
            raise Refused("pack_unsafe", pack=manifest.name, file=shown_path(member.name))
        if member.size != file.size_bytes:
            raise Damaged("pack_wrong_hash", pack=manifest.name, file=file.path)
        _copy(_content(tar, member), target, file, manifest)
        tar.members.clear()  # type: ignore[attr-defined]  # it would remember every member
    if expected:
        raise Damaged("pack_incomplete", pack=manifest.name, file=min(expected))
    write_atomically(target / MANIFEST, data)
    return manifest


def _is_file(member: tarfile.TarInfo) -> bool:
    """Return whether a member is a regular file rather than a link, device, folder or sparse file."""
    return member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(member)
    assert content is not None  # a plain file has one
    return content


def require_room(target: Path, manifest: Manifest, here_bytes: int = 0) -> None:
    """Raise DoesNotFit if the disk has no room for the rest of a pack.

    here_bytes: the size of the parts that are already on the disk.
    """
    needs_bytes = max(0, manifest.size_bytes - here_bytes) + SPARE_BYTES
    free_bytes = shutil.disk_usage(target).free
    if free_bytes < needs_bytes:
        raise DoesNotFit("pack_no_room", pack=manifest.name, needs_bytes=needs_bytes, free_bytes=free_bytes)


def _copy(content: IO[bytes], target: Path, file: PackFile, manifest: Manifest) -> None:
    """Copy a file, flush it to disk, and check its size and hash. Raises Damaged."""
    path = target / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, n_bytes = hashlib.sha256(), 0
    with path.open("xb") as copy:
        while chunk := content.read(CHUNK_BYTES):
            n_bytes += len(chunk)
            if n_bytes > file.size_bytes:
                break
            digest.update(chunk)
            copy.write(chunk)
        copy.flush()
        os.fsync(copy.fileno())
    if n_bytes < file.size_bytes:
        raise Damaged("pack_incomplete", pack=manifest.name, file=file.path)
    if n_bytes > file.size_bytes or digest.hexdigest() != file.sha256:
        raise Damaged("pack_wrong_hash", pack=manifest.name, file=file.path)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file.

    Raises OSError for anything else, because opening a pipe or device could block forever.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        yield file


class _Bounded(io.RawIOBase):
    """A decompressed archive that rejects large reads, because a header in the archive may claim any length."""

    def __init__(self, content: gzip.GzipFile) -> None:
        self._content = content

    def read(self, n_bytes: int = -1) -> bytes:
        if not 0 <= n_bytes <= MAX_READ_BYTES:
            raise tarfile.ReadError("a header is too long")
        return self._content.read(n_bytes)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._content.seek(offset, whence)

    def tell(self) -> int:
        return self._content.tell()
