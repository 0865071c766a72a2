"""The shelf by the loopback API: names, what is in use, what is freed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import gguf
import pytest

from app.api import requests
from app.api.models import ShelfModel
from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.stage_store import StageStore
from app.core.errors import BadInput
from app.core.reasons import said
from app.node.control.shelf_routes import ShelfModels
from backends.contract import Layers, Role
from testbed import tiny


class Nowhere:
    """Files that came from nowhere, of which none is ours."""

    def with_origin(self, entry: Entry, described: ShelfModel) -> ShelfModel:
        return described

    def __init__(self) -> None:
        self.refuses: BadInput | None = None

    async def forget(self, entry: Entry) -> int | None:
        if self.refuses:
            raise self.refuses
        return None


class Place:
    """A shelf of its own; `loaded` is the model in use."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.loaded = folder, ""
        self.stages = StageStore(folder / "stages", 1 << 30)
        self.shelf = Shelf(folder / "models", folder / "no-guide", self.stages)
        self.origins = Nowhere()
        self.models = ShelfModels(self.shelf, self.stages, lambda: [self.loaded], self.origins)

    async def add(self, name: str | None = None, **shape: Any) -> ShelfModel:
        path = tiny.llama(self.folder / "m.gguf", layers=4, **shape)
        order = requests.Import(path=str(path), name=name)
        return (await self.models.add(order, lambda _: None)).model


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_family_that_the_engine_does_not_know_is_told_before_it_is_on_the_shelf(place: Place) -> None:
    with pytest.raises(BadInput, match="engine_knows_not") as refused:
        await place.add(architecture="martian")
    assert refused.value.reason.facts == {"architecture": "martian"}
    assert await place.models.listed() == []
    assert [path.name for path in (place.folder / "models").iterdir()] == []
    assert (await place.add(architecture="xverse")).name == "m"  # known, not proved to split


async def test_a_way_to_split_words_that_the_engine_does_not_know_is_told_before_it_is_on_the_shelf(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf.GGUFWriter, "add_tokenizer_pre", _martian_words)
    with pytest.raises(BadInput, match="engine_pre_unknown") as refused:
        await place.add()
    assert refused.value.reason.facts == {"name": "martian"}
    assert "newer engine" in said(refused.value)
    assert await place.models.listed() == []


def _martian_words(writer: gguf.GGUFWriter, _: str) -> None:
    writer.add_string("tokenizer.ggml.pre", "martian")


async def test_a_model_gets_the_name_that_was_asked_for(place: Place) -> None:
    assert (await place.add("chosen")).name == "chosen"
    assert (await place.add()).name == "m"
    with pytest.raises(BadInput) as caught:
        await place.add("no/../name")
    assert caught.value.reason.code == "model_name_odd"


async def test_a_loaded_model_stays_though_nobody_looks_at_it(place: Place) -> None:
    place.loaded = (await place.add()).id
    with pytest.raises(BadInput) as caught:
        await place.models.remove("m")
    assert caught.value.reason.code == "model_in_use"
    place.loaded = ""
    assert (await place.models.remove("m")).freed_bytes == 0


async def test_a_model_whose_file_cannot_be_deleted_stays_on_the_shelf(place: Place) -> None:
    """Otherwise its file would remain with no name by which to delete it."""
    name = (await place.add()).name
    place.origins.refuses = BadInput("model_file_stays", path="/disk/m.gguf", why="read-only")
    with pytest.raises(BadInput):
        await place.models.remove(name)
    assert [entry.name for entry in place.shelf.entries()] == [name]


async def test_what_a_removal_frees_is_told(place: Place) -> None:
    await place.add()
    entry = place.shelf.get("m")
    stage = place.stages.write_stage(place.shelf.cut(entry, Layers(0, 2), Role.FIRST))
    size = stage.stat().st_size
    assert (await place.models.remove("m")).freed_bytes >= size
    assert not stage.exists()
    assert place.shelf.import_file(place.folder / "m.gguf").path == entry.path  # it stayed


async def test_a_cancelled_import_hashes_no_more(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny.llama(place.folder / "m.gguf", layers=1)
    hashing = asyncio.Event()
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def slow(self: Shelf, path: Path, progress: Any, **_: Any) -> None:
        for done in range(1000):
            seen.append(done)
            progress(done, 1000)
            loop.call_soon_threadsafe(hashing.set)
            time.sleep(0.01)

    monkeypatch.setattr(Shelf, "import_file", slow)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(place.models.add(requests.Import(path=str(path)), lambda _: None), name="import")
        await hashing.wait()
        task.cancel()
        await asyncio.wait({task})
    assert len(seen) < 1000
