"""One node for each home: a lock that the system frees when the process ends, however it ends."""

from __future__ import annotations

import errno
import logging
import os
import sys
from pathlib import Path

log = logging.getLogger(__name__)

_TAKEN = frozenset({errno.EAGAIN, errno.EACCES, errno.EDEADLK})


class HomeLock:
    """Held from `take` to the end of this process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self) -> bool:
        """Whether no other process holds it. Where the file system knows no locks, nobody does.

        Raises FileNotFoundError where the home itself is gone.
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
        if not self._is(file):  # who held it before took the file away
            os.close(file)
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Another process may take it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self) -> None:
        """The file goes, and with it the lock. Raises OSError."""
        if sys.platform == "win32":  # deletes no open file, and whoever opens it next keeps it
            self.release()
        self._path.unlink(missing_ok=True)
        self.release()

    def _is(self, file: int) -> bool:
        """Whether this is the file that whoever comes next would find."""
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
