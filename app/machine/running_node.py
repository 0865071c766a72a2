"""The lock that allows only one running node per home, and `runtime.json`, which contains that node's address.

The system releases the lock when the process ends, even after a crash. `runtime.json` also contains the node's access
token, so its mode is 0600.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from pathlib import Path

import msgspec
import psutil

from app.decoding import decode
from app.machine.paths import write_atomically

log = logging.getLogger(__name__)

CLOCK_SECONDS = 2.0  # the time of a file and the start of a process are measured differently

_TAKEN = frozenset({errno.EAGAIN, errno.EACCES, errno.EDEADLK})


class HomeLock:
    """The file lock of a home, held from `acquire` until `release` or the end of this process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self) -> bool:
        """Acquire the lock, or return False if another process holds it.

        On a file system without locks, this always succeeds. Raises FileNotFoundError if the home no longer exists.
        """
        if self._file is not None:
            return True
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(file)
        except OSError as error:
            if error.errno in _TAKEN:
                os.close(file)
                return False
            log.info("this home cannot be locked: %s", error)
        if not self._is_current(file):  # the previous holder deleted the file
            os.close(file)
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Release the lock, so that another process can acquire it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self) -> None:
        """Release the lock and delete its file. Raises OSError."""
        # Windows cannot delete an open file, so another process may open it before it is deleted
        if sys.platform == "win32":
            self.release()
        self._path.unlink(missing_ok=True)
        self.release()

    def _is_current(self, file: int) -> bool:
        """Return whether the path still leads to this open file. If not, other processes would lock another file."""
        try:
            return os.path.samestat(os.fstat(file), os.stat(self._path))
        except FileNotFoundError:
            return False


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


BY_WINDOW = "POOLHOUSE_BY_WINDOW"  # environment variable that is set if the window started the node


class Runtime(msgspec.Struct, frozen=True):
    """The details that the command line and the window need to connect to the running node."""

    pid: int
    port: int
    token: str
    version: str
    home: str = ""  # the home to which this file belongs; a copied home contains a copy of the file
    folder: int = 0  # the inode of that home, which a rename does not change
    by_window: bool = False  # started by a window, so that the next window may stop it


def of_this_process(path: Path, port: int, token: str, version: str) -> Runtime:
    return Runtime(os.getpid(), port, token, version, *_place(path), BY_WINDOW in os.environ)


def claim(path: Path, port: int, token: str, version: str) -> None:
    """Record this process as the running node of its home. Raises OSError."""
    write(path, of_this_process(path, port, token, version))


def write(path: Path, runtime: Runtime) -> None:
    """Replace runtime.json. The file is never readable by other users of this computer."""
    write_atomically(path, msgspec.json.encode(runtime))


def read(path: Path) -> Runtime | None:
    """Return the details of the running node, or None if no node is running.

    The result is also None if the file is damaged, was copied with its home, or names a process that has exited, even
    if a later process has its number.
    """
    try:
        runtime = decode(path.read_bytes(), Runtime)
        home, folder = _place(path)
    except (OSError, ValueError):
        return None
    if runtime.home and runtime.home != home and runtime.folder != folder:
        return None
    return runtime if _still_runs(runtime.pid, path) else None


def _still_runs(pid: int, path: Path) -> bool:
    """Return whether the process that wrote this file is still running.

    After a crash, the system may give the same ID to another process. That process started after the file was written.
    If the clock was changed in the meantime, the node itself can seem to have started later, so the command line is
    checked too.
    """
    try:
        process = psutil.Process(pid)
        if process.create_time() <= path.stat().st_mtime + CLOCK_SECONDS:
            return True
        return any(word == "app" or "poolhouse" in Path(word).name.lower() for word in process.cmdline())
    except (psutil.NoSuchProcess, FileNotFoundError):
        return False
    except (psutil.Error, OSError):  # it may belong to another user
        return True


def _place(path: Path) -> tuple[str, int]:
    """Return the path and inode of the home that contains this file. Raises OSError."""
    return str(path.parent.resolve()), path.parent.stat().st_ino
