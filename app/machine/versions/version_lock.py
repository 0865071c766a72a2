"""The lock that keeps the files of a running version: each process holds it, and only what nobody holds is deleted.

It lies on the version's own list of files, so it needs no other file and works where nothing can be written.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from app import launcher

if sys.platform != "win32":
    import fcntl


def hold(folder: str, version: str) -> int | None:
    """Hold a version in the folder of the versions until this process ends. Return the open file, if it is there."""
    if not folder:
        return None
    try:
        file = os.open(Path(folder, version, launcher.MANIFEST), os.O_RDONLY)
    except OSError:
        return None  # the installed copy runs
    if sys.platform != "win32":  # there, an open file keeps its folder from being renamed
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return None
    return file


def is_held(version_folder: Path) -> bool:
    """Return whether a process runs from this version."""
    if sys.platform == "win32":
        return False
    try:
        file = os.open(version_folder / launcher.MANIFEST, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
