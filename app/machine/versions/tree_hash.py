"""One hash for a whole folder. It covers all paths, all bytes and which files are executable, but no dates."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path


def files_in(folder: Path) -> Iterator[Path]:
    """Yield all files and symbolic links below a folder, sorted by path."""
    for path in sorted(folder.rglob("*"), key=lambda path: path.parts):  # Windows would ignore the case
        if path.is_symlink() or not path.is_dir():
            yield path


def tree_hash(folder: Path) -> str:
    """Return the hash of everything below a folder. Raises OSError."""
    total = hashlib.sha256()
    for path in files_in(folder):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            line = f"{name}\0link\0{os.readlink(path)}\n"
        else:
            line = f"{name}\0{path.stat().st_mode & 0o111:o}\0{file_hash(path)}\n"
        total.update(line.encode())
    return total.hexdigest()


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_bytes(folder: Path) -> int:
    """Return the total size of all files below a folder."""
    return sum(path.lstat().st_size for path in files_in(folder) if not path.is_symlink())
