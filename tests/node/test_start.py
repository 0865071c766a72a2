"""What a start was told, and what was chosen since."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.machine import settings
from app.machine.paths import Home
from app.node.options import NodeOptions
from app.node.start import _settings


def started(home: Home, name: str | None) -> str:
    return _settings(NodeOptions(name=name), home).name


def test_a_renaming_holds_beside_the_name_of_the_start(tmp_path: Path) -> None:
    home = Home.at(tmp_path).create()
    assert started(home, "den") == "den"
    kept = settings.load(home.settings_file)
    settings.save(home.settings_file, msgspec.structs.replace(kept, name="study"))  # by a person
    assert started(home, "den") == "study"
    assert started(home, None) == "study"
    assert started(home, "attic") == "attic"  # another name is another choice
    assert started(home, "attic") == "attic"
