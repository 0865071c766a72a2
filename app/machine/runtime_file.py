"""`runtime.json`: where the running node of a home listens, and the token that opens it. Mode 0600."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import psutil

from app.decoding import decode
from app.machine.paths import write_atomically

BY_WINDOW = "POOLHOUSE_BY_WINDOW"  # in the environment of a node


class Runtime(msgspec.Struct, frozen=True):
    """What a face of the app needs to find its node."""

    pid: int
    port: int
    token: str
    version: str
    home: str = ""  # whose file this is: a copied home has a copy of it
    folder: int = 0  # the same, by the file system's number: a home may be renamed
    by_window: bool = False  # a window started it, and the next one may end it


def of_this_process(path: Path, port: int, token: str, version: str) -> Runtime:
    return Runtime(os.getpid(), port, token, version, *_place(path), BY_WINDOW in os.environ)


def claim(path: Path, port: int, token: str, version: str) -> None:
    """This process is the node of this home now. Raises OSError."""
    write(path, of_this_process(path, port, token, version))


def write(path: Path, runtime: Runtime) -> None:
    """Replace the file so that no other user of this computer can ever read it."""
    write_atomically(path, msgspec.json.encode(runtime))


def read(path: Path) -> Runtime | None:
    """The node that runs now, or None: no file, a damaged one, that of a home that was copied, or a process
    that is gone."""
    try:
        runtime = decode(path.read_bytes(), Runtime)
        home, folder = _place(path)
    except (OSError, ValueError):
        return None
    if runtime.home and runtime.home != home and runtime.folder != folder:
        return None
    return runtime if psutil.pid_exists(runtime.pid) else None


def _place(path: Path) -> tuple[str, int]:
    """The home of this file. Raises OSError."""
    return str(path.parent.resolve()), path.parent.stat().st_ino
