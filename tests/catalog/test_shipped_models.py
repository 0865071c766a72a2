"""Models that an installer brought: listed beside the Guide, never removed, and replaced by an update."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.catalog.shelf import Shelf
from app.core.errors import BadInput
from testbed import tiny
from tests.catalog.conftest import Home

SHAPE = tiny.Shape(layers=2, seed=5)


def shelf_with(home: Home, *shipped: Path) -> Shelf:
    return Shelf(home.folder / "models", home.folder / "no-guide", home.stages, shipped)


def test_a_shipped_model_is_listed_and_cannot_be_removed(home: Home, tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "Small-Chat.gguf", SHAPE)
    shelf = shelf_with(home, path)
    (entry,) = shelf.entries()
    assert (entry.name, entry.shipped, entry.builtin, entry.path) == ("Small-Chat", True, False, str(path))
    assert shelf.verify(entry).model.id == entry.model.id
    with pytest.raises(BadInput) as refused:
        shelf.remove("Small-Chat")
    assert refused.value.reason.code == "model_builtin"


def test_it_is_gone_with_the_installation(home: Home, tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "Small-Chat.gguf", SHAPE)
    assert shelf_with(home, path).entries()
    assert not shelf_with(home).entries()
    path.unlink()
    assert not shelf_with(home, path).entries()


def test_an_update_brings_a_new_file(home: Home, tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "Small-Chat.gguf", SHAPE)
    (before,) = shelf_with(home, path).entries()
    tiny.llama(path, tiny.Shape(layers=2, seed=6))
    os.utime(path, ns=(1, before.mtime_ns + 1))
    (after,) = shelf_with(home, path).entries()
    assert after.model.id != before.model.id


def test_a_model_that_the_user_imported_keeps_its_name(home: Home, tmp_path: Path) -> None:
    own, ours = tmp_path / "own", tmp_path / "ours"
    own.mkdir()
    ours.mkdir()
    mine = tiny.llama(own / "Small-Chat.gguf", tiny.Shape(layers=2, seed=7))
    shelf_with(home).import_file(mine)
    shelf = shelf_with(home, tiny.llama(ours / "Small-Chat.gguf", SHAPE))
    (entry,) = shelf.entries()
    assert (entry.path, entry.shipped) == (str(mine), False)
