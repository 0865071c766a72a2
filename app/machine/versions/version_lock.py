"""The lock that protects the files of a running version. Every process of the version holds it until it exits.

Only versions that no process holds are deleted. The lock is placed on the version's own manifest, so it needs no other
file and works on read-only disks.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from app import launcher

if sys.platform != "win32":
    import fcntl


def hold(folder: str, version: str) -> int | None:
    """Lock a version in the folder of versions until this process ends.

    Return the file descriptor, or None if the version is not in the folder or cannot be locked.
    """
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
    """Return whether any process is running from this version."""
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
