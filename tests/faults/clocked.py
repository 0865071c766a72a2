"""Becomes a program whose clocks others set: `python -m tests.faults.clocked FILE AHEAD -- PYTHON -m MODULE …` (POSIX).

At SIGUSR1 it reads from FILE how far its clocks are off from then on, and removes FILE. That moves what its Python
code asks. Its children's clocks stay: workers only measure how long something takes. AHEAD: so many seconds later than
it is does this machine believe it was started, children and all; a time namespace has it so (Linux, root).
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLONE_NEWTIME = 0x80  # linux/sched.h
NAMESPACE, OFFSETS = Path("/proc/self/ns/time_for_children"), Path("/proc/self/timens_offsets")
NS = 10**9
SINCE_START = ("monotonic", "perf_counter")


def has_time_namespaces() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0 and NAMESPACE.exists()


def enter_time(ahead_s: int) -> None:
    """Move this process's clocks since start ahead by this much. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWTIME):
        raise OSError(ctypes.get_errno(), "no time namespace of our own")
    OFFSETS.write_text(f"monotonic {ahead_s} 0\nboottime {ahead_s} 0\n", "utf-8")
    with NAMESPACE.open("rb") as handle:
        if libc.setns(handle.fileno(), CLONE_NEWTIME):
            raise OSError(ctypes.get_errno(), "cannot enter the time namespace")


class Clocks:
    """The offsets of the clocks."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.wall_s = self.since_s = 0.0

    def read(self, *_: object) -> None:
        data = json.loads(self._file.read_text("utf-8"))
        self.wall_s, self.since_s = data["wall_s"], data["since_s"]
        self._file.unlink()

    def put(self) -> None:
        """Replace the true clocks, before anything imports them under another name."""
        wall, wall_ns, local = time.time, time.time_ns, time.localtime
        moved: dict[str, Callable[..., Any]] = {
            "time": lambda: wall() + self.wall_s,
            "time_ns": lambda: wall_ns() + int(self.wall_s * NS),
            "localtime": lambda at=None: local(wall() + self.wall_s if at is None else at),
        }
        for name in SINCE_START:
            moved |= self._since(name)
        for name, clock in moved.items():
            setattr(time, name, clock)

    def _since(self, name: str) -> dict[str, Callable[[], Any]]:
        """Such a clock in seconds, and in whole nanoseconds."""
        true, true_ns = getattr(time, name), getattr(time, f"{name}_ns")
        return {name: lambda: true() + self.since_s, f"{name}_ns": lambda: true_ns() + int(self.since_s * NS)}


def main() -> None:
    file, ahead, _, _, _, module, *words = sys.argv[1:]
    if int(ahead):
        enter_time(int(ahead))
    clocks = Clocks(Path(file))
    clocks.put()
    signal.signal(signal.SIGUSR1, clocks.read)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
