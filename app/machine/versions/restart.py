"""Starting the version that an update has installed, in place of the running one.

While a node restarts, a marker file in its home keeps windows from starting another node.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from app import __version__, launcher
from app.machine.versions.version_store import VersionStore

RESTART_SECONDS = 30.0  # ending takes up to ten; then windows start a node again
RESTARTING = "restarting"  # the note, in the home

_wanted: list[bool] = []


def note_window_started() -> None:
    """Record that the window of this version has started well. The launcher may be waiting for this."""
    if store := VersionStore.of_this_process():
        store.mark_started(__version__, launcher.WINDOW)


def note_node_crash(code: int) -> None:
    """Record that the node of this version crashes repeatedly. The next start then uses the previous version."""
    if store := VersionStore.of_this_process():
        store.note_crash(__version__, code)


def restart_at_end(home: Path | None = None) -> None:
    """Arrange that the chosen version starts after this program has exited normally.

    home: the home of the node that restarts, or None if this program is not a node.
    """
    _wanted.append(True)
    if home is not None:
        with contextlib.suppress(OSError):
            (home / RESTARTING).write_text("", "utf-8")


def is_restarting(home: Path) -> bool:
    """Return whether the node of a home is currently restarting."""
    try:
        return 0 <= time.time() - (home / RESTARTING).stat().st_mtime < RESTART_SECONDS
    except OSError:
        return False


def note_restarted(home: Path) -> None:
    """Record that the node of a home is running again."""
    with contextlib.suppress(OSError):
        (home / RESTARTING).unlink(missing_ok=True)


def restart_if_wanted(words: Sequence[str]) -> None:
    """Replace this process with the chosen version if `restart_at_end` was called. Return if that fails."""
    store = VersionStore.of_this_process()
    if not _wanted or store is None:
        return
    shown = [word for word in words if word != "--hidden"]  # whoever restarts wants to see the window again
    for command in commands(store, os.environ):
        with contextlib.suppress(OSError):
            if sys.platform == "win32":  # it cannot replace a process
                subprocess.Popen([*command, *shown], env={**os.environ, launcher.WAIT_FOR: str(os.getpid())})
                return
            os.execv(command[0], [*command, *shown])  # noqa: S606


def commands(store: VersionStore, environment: Mapping[str, str]) -> list[list[str]]:
    """Return the command lines that start Poolhouse, best first. The installed copy may have been deleted."""
    programs = []
    start = store.base / "app" / "app" / "launcher.py"
    if start.is_file():
        programs.append([str(launcher.python_of(store.base)), "-P", str(start)])
    if image := environment.get("APPIMAGE", ""):
        programs.append([image])
    if name := launcher.choose(store.folder, ""):
        programs.append([str(launcher.python_of(store.folder / name)), "-P", "-m", "app"])
    return programs
