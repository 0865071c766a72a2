"""A shelf with two tiny models and an empty stage store, new for each test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.cut import Cut
from app.catalog.stages.stage_store import StageStore
from backends.contract import Layers, Role
from testbed import tiny

LIMIT_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Home:
    """One machine's catalog."""

    folder: Path
    shelf: Shelf
    stages: StageStore

    def add(self, name: str, **shape: Any) -> Entry:
        return self.shelf.import_file(tiny.llama(self.folder / f"{name}.gguf", **shape))


def new_home(folder: Path) -> Home:
    folder.mkdir(exist_ok=True)
    stages = StageStore(folder / "stages", LIMIT_BYTES)
    return Home(folder, Shelf(folder / "models", folder / "guide.gguf", stages), stages)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return new_home(tmp_path / "host")


@pytest.fixture
def lender(tmp_path: Path) -> Home:
    return new_home(tmp_path / "lender")


@pytest.fixture
def cut(home: Home) -> Cut:
    """The middle of a model: 4 of its 8 layers."""
    entry = home.add("m", layers=8)
    return home.shelf.cut(entry, Layers(2, 6), Role.MIDDLE)
