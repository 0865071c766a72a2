"""The facts of an installed copy of Poolhouse: its installer, its models, and the program that a user starts.

An installer writes `installed.json` beside the folder of the app. A copy without it runs from its source.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import msgspec

from app import launcher
from app.decoding import decode

APP = Path(__file__).resolve().parents[2]  # the folder with the packages app and backends
MANIFEST = "installed.json"
GUIDE = "guide.gguf"


class Installation(msgspec.Struct, frozen=True):
    """The facts that an installer wrote about itself."""

    version: str
    commit: str
    kind: str  # the installer, such as `deb` or `appimage`
    command: str  # the program that a user starts; "" if that depends on where the user put it
    layers: dict[str, str]  # name -> hash of all files in it
    data_format: int = 1  # as of app/machine/data_format.py


@cache
def installation() -> Installation | None:
    """Return how this copy was installed, or None if it runs from its source."""
    try:
        return decode((APP.parent / MANIFEST).read_bytes(), Installation)
    except (OSError, ValueError):
        return None


def installed_version() -> str:
    """Return the version on disk, or "". It may be newer than the running version after an update."""
    try:
        return decode((APP.parent / MANIFEST).read_bytes(), Installation).version
    except (OSError, ValueError):
        return ""


def unpacked_folder() -> Path | None:
    """Return the folder into which our AppImage unpacks its versions, or None if this copy is not an AppImage."""
    facts, folder = installation(), os.environ.get("APPDIR", "")
    base = os.environ.get(launcher.BASE) or str(APP)
    if facts is None or facts.kind != "appimage" or not folder or not Path(base).is_relative_to(folder):
        return None
    above = Path(folder).parent
    return above if above.name.startswith("poolhouse-appimage") else None


def window_starter() -> Path:
    """Return the path that Windows' setup program uses for the program that opens the window without a console."""
    return APP.parent / "Poolhouse.exe"


def models_folder() -> Path:
    """Return the folder of the models that are shipped with the app."""
    return APP.parent / "models" if installation() else APP / "resources"


def guide_file() -> Path:
    """Return the path of the Guide, the built-in model."""
    return models_folder() / GUIDE


def shipped_models() -> tuple[Path, ...]:
    """Return the models, other than the Guide, that an installer brought."""
    return tuple(path for path in sorted(models_folder().glob("*.gguf")) if path.name != GUIDE)
