"""`runtime.json`: where the running node of a home listens, and the token that opens it. Mode 0600."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import psutil

from app.machine.paths import write_atomically


class Runtime(msgspec.Struct, frozen=True):
    """What a face of the app needs to find its node."""

    pid: int
    port: int
    token: str
    version: str


def of_this_process(port: int, token: str, version: str) -> Runtime:
    return Runtime(os.getpid(), port, token, version)


def write(path: Path, runtime: Runtime) -> None:
    """Replace the file so that no other user of this computer can ever read it."""
    write_atomically(path, msgspec.json.encode(runtime))


def read(path: Path) -> Runtime | None:
    """The node that runs now, or None: no file, a damaged one, or a process that is gone."""
    try:
        runtime = msgspec.json.decode(path.read_bytes(), type=Runtime)
    except (OSError, ValueError):
        return None
    return runtime if psutil.pid_exists(runtime.pid) else None
