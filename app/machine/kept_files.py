"""Files of computed prompts.

They are encrypted with this machine's key, limited in size, and deleted when long unused.

A file consists of a salt and encrypted pieces. Its encryption key is derived from the salt and this machine's key.
Each piece is bound to its position, to whether it is the last one, and to the name of the file, so a file that was
altered, truncated or renamed cannot be opened.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

MAGIC = b"PHK1"
SALT_BYTES, TAG_BYTES, NONCE_BYTES = 32, 16, 12
PIECE_BYTES = 1 << 20
START = struct.Struct(">IQ")  # positions and bytes of the state, in the first piece
DEFAULT_BYTES = 4 << 30
DISK_SHARE = 0.05  # of what is free on the disk
UNUSED_S = 14 * 86400.0  # a file that was not used for so long is deleted
PART = ".part"
OWN = "own"  # the folder of this machine's own prompts
_NAME = re.compile(r"[0-9a-f]{64}")


def _remove_folder(folder: Path) -> None:
    """Delete a folder with all that is in it. Raises OSError if something remains."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


class DamagedFile(Exception):
    """An error for a file that was not written by this machine in this format, or was changed afterwards."""


@dataclass(frozen=True, slots=True)
class _Held:
    path: Path
    n_bytes: int
    used_at: float


class SealedWriter:
    """A writer for a new file. The file gets its final name only when it is complete."""

    def __init__(self, path: Path, key: bytes, positions: int, total_bytes: int) -> None:
        """Begin a file of `total_bytes`. Raises OSError."""
        # two runs of one model may keep the same prompt at once
        self._path, self._part = path, path.with_name(f"{path.name}.{os.urandom(4).hex()}{PART}")
        self._left, self._number, self._rest = total_bytes, 0, bytearray()
        salt = os.urandom(SALT_BYTES)
        self._seal = _Seal(key, salt, path.name)
        self._file: BinaryIO = os.fdopen(
            os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600), "wb"
        )
        self._file.write(MAGIC + salt + self._seal.close(0, START.pack(positions, total_bytes), is_last=False))

    def add(self, data: bytes) -> None:
        """Append a piece of the state. Raises OSError."""
        self._rest += data
        self._left -= len(data)
        while len(self._rest) >= PIECE_BYTES or (self._rest and not self._left):
            self._number += 1
            piece = bytes(self._rest[:PIECE_BYTES])
            del self._rest[:PIECE_BYTES]
            is_last = not self._rest and not self._left
            self._file.write(self._seal.close(self._number, piece, is_last=is_last))

    def commit(self) -> None:
        """Complete the file and give it its final name. Raises OSError."""
        self._file.close()
        if self._left:
            self._part.unlink(missing_ok=True)
            raise OSError("the state is incomplete")
        os.replace(self._part, self._path)

    def abort(self) -> None:
        """Delete the incomplete file."""
        with suppress(OSError):  # what is still to be written does not fit on a full disk
            self._file.close()
        self._part.unlink(missing_ok=True)


class SealedReader:
    """A reader for a file. It returns no data from a piece until the whole piece has been verified."""

    def __init__(self, path: Path, key: bytes) -> None:
        """Open a file. Raises OSError or DamagedFile."""
        self._file = path.open("rb")
        try:
            head = self._file.read(len(MAGIC) + SALT_BYTES)
            if len(head) != len(MAGIC) + SALT_BYTES or not head.startswith(MAGIC):
                raise DamagedFile
            self._seal = _Seal(key, head[len(MAGIC) :], path.name)
            start = self._seal.open(0, self._file.read(START.size + TAG_BYTES), is_last=False)
            self.positions, self.total_bytes = START.unpack(start)
            n_pieces = -(-self.total_bytes // PIECE_BYTES)
            size = len(head) + START.size + TAG_BYTES + self.total_bytes + n_pieces * TAG_BYTES
            if os.fstat(self._file.fileno()).st_size != size:
                raise DamagedFile
        except BaseException:
            self._file.close()
            raise

    def pieces(self) -> Iterator[bytes]:
        """Yield the pieces of the state in order. Raises OSError or DamagedFile."""
        left, number = self.total_bytes, 0
        while left:
            number += 1
            n_bytes = min(left, PIECE_BYTES)
            left -= n_bytes
            yield self._seal.open(number, self._file.read(n_bytes + TAG_BYTES), is_last=not left)

    def close(self) -> None:
        self._file.close()


class _Seal:
    def __init__(self, key: bytes, salt: bytes, name: str) -> None:
        derived = HKDF(SHA256(), 32, salt, b"poolhouse computed prompt").derive(key)
        self._gcm, self._name = AESGCM(derived), name.encode()

    def close(self, number: int, data: bytes, *, is_last: bool) -> bytes:
        return self._gcm.encrypt(number.to_bytes(NONCE_BYTES, "big"), data, self._name + bytes([is_last]))

    def open(self, number: int, data: bytes, *, is_last: bool) -> bytes:
        try:
            return self._gcm.decrypt(number.to_bytes(NONCE_BYTES, "big"), data, self._name + bytes([is_last]))
        except InvalidTag:
            raise DamagedFile from None


class KeptFiles:
    """The folder of these files. Its methods access the disk.

    It has a subfolder for each owner: this machine, or a host whose layers run here.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def used_bytes(self) -> int:
        """Return the size of all files."""
        return sum(held.n_bytes for held in self._held())

    def limit_bytes(self, chosen_bytes: int | None) -> int:
        """Return the maximum size of all files: the owner's choice, or by default a share of the free disk."""
        if chosen_bytes is not None:
            return chosen_bytes
        place = next(path for path in (self._folder, *self._folder.parents) if path.exists())
        free_bytes = shutil.disk_usage(place).free + self.used_bytes()
        return min(DEFAULT_BYTES, int(DISK_SHARE * free_bytes))

    def write(self, owner: str, name: str, key: bytes, positions: int, total_bytes: int, limit: int) -> SealedWriter:
        """Begin a file, after deleting the least recently used ones to make room. This machine's own files make room
        only for its own.

        Raises OSError if it cannot fit.

        limit: the maximum size of all files together (see `limit_bytes`).
        """
        n_pieces = 1 + -(-total_bytes // PIECE_BYTES)
        most_bytes = limit - total_bytes - n_pieces * TAG_BYTES
        if most_bytes < 0:
            raise OSError("the state is larger than all states may be")
        if self.trim(most_bytes, spares_own=owner != OWN) > most_bytes:
            raise OSError("this machine's own states take all the room")
        path = self._path(owner, name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return SealedWriter(path, key, positions, total_bytes)

    def read(self, owner: str, name: str, key: bytes) -> SealedReader | None:
        """Open a file and mark it as just used.

        Return None if there is no such file. Raises OSError or DamagedFile.
        """
        path = self._path(owner, name)
        try:
            reader = SealedReader(path, key)
        except FileNotFoundError:
            return None
        self.touch(owner, name)
        return reader

    def touch(self, owner: str, name: str) -> None:
        """Mark a file as just used."""
        with suppress(OSError):  # it was deleted, or the disk is read-only
            os.utime(self._path(owner, name))

    def has(self, owner: str, name: str) -> bool:
        return self._path(owner, name).exists()

    def remove(self, owner: str, name: str) -> None:
        self._path(owner, name).unlink(missing_ok=True)

    def remove_owner(self, owner: str) -> None:
        """Delete all files of a host that was removed from the household. Raises OSError."""
        _remove_folder(self._folder / owner)

    def remove_all(self) -> None:
        """Delete all files. Raises OSError if one remains."""
        _remove_folder(self._folder)

    def owners(self) -> list[str]:
        """Return the owners that have files, other than this machine."""
        return [path.name for path in self._folder.glob("*") if path.is_dir() and _NAME.fullmatch(path.name)]

    def trim(self, most_bytes: int, *, spares_own: bool = False) -> int:
        """Delete long unused files, then others until the rest fits into `most_bytes`. Return the size of the rest.

        The files of other hosts are deleted before this machine's own, and the least recently used ones first.

        spares_own: whether to delete none of this machine's own files, except long unused ones.
        """
        held = sorted(self._held(), key=lambda file: (file.path.parent.name == OWN, file.used_at))
        left = sum(file.n_bytes for file in held)
        oldest = time.time() - UNUSED_S
        for file in held:
            may_go = left > most_bytes and not (spares_own and file.path.parent.name == OWN)
            if may_go or file.used_at <= oldest:
                with suppress(OSError):  # in use, or the disk is read-only
                    file.path.unlink(missing_ok=True)
                    left -= file.n_bytes
        return left

    def clean(self) -> None:
        """Delete the incomplete files that remain from an earlier run of the node."""
        for path in self._folder.glob(f"*/*{PART}"):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _path(self, owner: str, name: str) -> Path:
        assert _NAME.fullmatch(name), "the name of a file is a hash"
        return self._folder / owner / name

    def _held(self) -> list[_Held]:
        held = []
        for path in self._folder.glob("*/*"):
            try:
                facts = path.stat()
            except OSError:  # deleted meanwhile
                continue
            held.append(_Held(path, facts.st_size, facts.st_mtime))
        return held
