"""The SHA-256 of each tensor of a model and, in the same reading, that of its files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from app.catalog.files import Tell, chunks, hash_range
from app.catalog.gguf.gguf_header import Header
from app.catalog.transfers.download_records import joint_hash

Span = tuple[str, int, int]  # a name, where it begins, its bytes


def model_hashes(header: Header, paths: Sequence[Path], tell: Tell, *, whole: bool) -> tuple[dict[str, str], str]:
    """Of each tensor by its name, and what the model's file is known by, in one file or several: "" unless `whole`,
    which costs the processor as much again. Raises OSError."""
    found: dict[str, str] = {}
    files: list[str] = []
    for path in paths:
        spans = [
            (name, one.offset, one.n_bytes) for name, one in header.tensors.items() if header.path_of(one) == str(path)
        ]
        with path.open("rb", buffering=0) as file:
            if whole:
                hashes, own = _Reading(file, tell).hashes(spans)
                files.append(own)
            else:
                hashes = {name: hash_range(file, at, size, tell) for name, at, size in spans}
        found |= hashes
    known = files[0] if len(files) == 1 else joint_hash(files) or ""
    return {name: found[name] for name in header.tensors}, known


class _Reading:
    """Reads a file once, from its beginning to its end; only a span that lies over another one is read by itself."""

    def __init__(self, file: BinaryIO, tell: Tell) -> None:
        self._file, self._tell = file, tell
        self._whole, self._place = hashlib.sha256(), 0

    def hashes(self, spans: Sequence[Span]) -> tuple[dict[str, str], str]:
        """Of each span, and of the file. What ends early has another hash than what is whole."""
        found: dict[str, str] = {}
        for name, offset, n_bytes in sorted(spans, key=lambda span: span[1]):
            if offset < self._place:
                found[name] = hash_range(self._file, offset, n_bytes, self._tell)
                continue
            self._go_to(offset)
            own = hashlib.sha256()
            for chunk in chunks(self._file, offset, n_bytes):
                own.update(chunk)
                self._take(chunk)
                self._tell(len(chunk))
            found[name] = own.hexdigest()
        self._go_to(os.fstat(self._file.fileno()).st_size)
        return found, self._whole.hexdigest()

    def _go_to(self, end: int) -> None:
        """Over the header, and over what lies between two tensors or after the last."""
        for chunk in chunks(self._file, self._place, end - self._place):
            self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        self._whole.update(chunk)
        self._place += len(chunk)
