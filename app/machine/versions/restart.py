"""Starting the version that an update installed, in place of the running one."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence

from app import __version__, launcher
from app.machine.versions.version_store import VersionStore

_wanted: list[bool] = []


def note_window_started() -> None:
    """Note that the window of this version started well, if the launcher may be watching it."""
    if store := VersionStore.of_this_process():
        store.mark_started(__version__, launcher.WINDOW)


def restart_at_end() -> None:
    """Start the version to use from now on once this program has ended in good order."""
    _wanted.append(True)


def restart_if_wanted(words: Sequence[str]) -> None:
    """Replace this process if `restart_at_end` was called. Returns if it was not, or if this is impossible."""
    store = VersionStore.of_this_process()
    if not _wanted or store is None:
        return
    start = store.base / "app" / "app" / "launcher.py"
    command = [str(launcher.python_of(store.base)), "-P", str(start), *words]
    if sys.platform == "win32":  # it cannot replace a process
        subprocess.Popen(command, env={**os.environ, launcher.WAIT_FOR: str(os.getpid())})
        return
    with contextlib.suppress(OSError):
        os.execv(command[0], command)  # noqa: S606
