"""The version number of a home's data format, which keeps an older Poolhouse from changing data it cannot read.

Each file already protects itself against damaged or unknown content. This number is for changes that an older version
would mistake for damage: a newer version writes its number once, before it changes anything.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from app import __version__
from app.core.errors import BadInput, Refused
from app.core.reasons import os_cause
from app.machine.json_state import read_json
from app.machine.paths import Home

FORMAT = 1  # raise it if the version before could not read what this one writes (docs/releasing.md)
FILE = "data_format.json"


class _File(msgspec.Struct, frozen=True):
    format: int = 1
    version: str = ""  # the first one that wrote this format here


def claim(home: Home, version: str = __version__, own_format: int = FORMAT) -> None:
    """Record that this version writes the data from now on.

    Raises Refused if a newer version has written the data, and BadInput if the number cannot be saved.
    """
    file = home.root / FILE
    noted = _read(file)
    if noted.format > own_format:
        raise Refused("data_newer", home=str(home.root), version=noted.version or "?", own=version)
    if noted.version and noted.format == own_format:
        return
    try:
        Home.write(file, msgspec.json.encode(_File(own_format, version)))
    except OSError as error:
        raise BadInput("home_unusable", path=str(home.root), why=os_cause(error)) from error


def _read(file: Path) -> _File:
    """Return the recorded format.

    A missing or damaged record counts as format 1, because each file protects itself.
    """
    try:
        return read_json(file, _File)
    except (OSError, ValueError):
        return _File()
