"""The embedding model beside the one that writes: memory for both, or for one; who waits, and who gives way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import psutil
import pytest

from app.api import requests
from app.api.snapshot import Snapshot
from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.stage_store import StageStore
from app.core.errors import AppError, BadInput, DoesNotFit
from app.core.ids import MachineId
from app.core.planner.placement import Candidate
from app.inference.worker.embedder import Embedder, Text, Vector
from app.node.lending.sleep import is_needed
from app.node.models import embeddings as module
from app.node.models.embeddings import MOST_CONTEXT, Embeddings
from app.node.verification.spare_memory import SpareMemory
from tests import tiny_bert

GIB = 1 << 30
IDS = (5, 6, 7, 8)


class Place:
    """A shelf with one embedding model, and a machine whose memory the test sets."""

    def __init__(self, folder: Path) -> None:
        self.shelf = Shelf(folder / "models", folder / "none", StageStore(folder / "stages", GIB))
        self.entry: Entry = self.shelf.import_file(tiny_bert.bert(folder / "bert.gguf"))
        self.most, self.taken, self.n_changes = 2 * GIB, 0, 0
        self.checks = SpareMemory(lambda: GIB)
        self.vectors = Embeddings(self.shelf, self._here, 1, self._changed, self.checks)

    def _here(self) -> tuple[Candidate, int]:
        return Candidate(MachineId("den"), "den", self.most), self.taken

    def _changed(self) -> None:
        self.n_changes += 1

    async def embed(self, n_texts: int = 1) -> int:
        """Return vectors whose number of values is the requested one."""
        made = await self.vectors.embed(self.entry, [IDS] * n_texts, None, cut=False)
        return len(made.vectors[0].values)

    async def load(self) -> None:
        order = requests.PlanModel(model="bert")
        await self.vectors.load(self.entry, order, lambda _: None)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[Place, None]:
    made = Place(tmp_path)
    yield made
    made.vectors.close()
    await made.vectors.unload()


async def test_who_names_one_that_makes_no_vectors_hears_of_those_that_do(place: Place) -> None:
    assert (await place.vectors.model("bert")).name == "bert"
    with pytest.raises(BadInput, match="embedding_model_unknown") as raised:
        await place.vectors.model("nobody")
    assert raised.value.reason.facts["there"] == "bert"
    place.shelf.remove("bert")
    for name in ("nobody", "default", ""):
        with pytest.raises(BadInput, match="embedding_model_missing"):
            await place.vectors.model(name)


async def test_memory_is_shared_with_what_writes_and_given_up_for_it(place: Place) -> None:
    assert place.vectors.uses() == (0, 0)
    assert await place.embed() == tiny_bert.WIDTH
    takes, comes = place.vectors.uses()
    assert takes < 80 << 20, "a small model takes little"
    assert comes == 0
    await place.vectors.make_room(place.most - takes)  # both fit
    assert place.vectors.describe() is not None
    await place.vectors.make_room(place.most - takes + 1)
    assert place.vectors.uses() == (0, 0)
    assert place.vectors.describe() is None
    place.taken = place.most - takes + 1
    with pytest.raises(DoesNotFit) as refused:
        await place.embed()
    facts = refused.value.reason.facts
    assert (facts["need_bytes"], facts["free_bytes"]) == (takes, takes - 1)
    place.taken -= 1
    assert await place.embed() == tiny_bert.WIDTH


async def test_a_long_text_takes_no_more_than_was_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vocabulary of most English ones: its scores are what takes most."""
    for name, value in (("VOCAB", 30_522), ("CONTEXT", MOST_CONTEXT), ("LAYERS", 1)):
        monkeypatch.setattr(tiny_bert, name, value)
    place = Place(tmp_path)
    text = tuple(5 + n % 290 for n in range(MOST_CONTEXT))
    await place.vectors.embed(place.entry, [text], None, cut=False)
    held = place.vectors.held
    assert held is not None
    assert held.embedder is not None
    taken = psutil.Process(held.embedder._worker.pid).memory_info().rss
    counted = place.vectors.uses()[0]
    await place.vectors.unload()
    assert taken <= counted < 1.5 * taken


async def test_each_text_is_told_once_it_is_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that leaves before the last one is charged for the others."""
    values, asked_for = list[int](), list[object]()
    whole, begun = Embedder.embed, asyncio.Event()

    async def stuck(self: Embedder, *args: object, cut: bool) -> object:
        asked_for.append(args)
        if len(asked_for) == 3:
            begun.set()
            await asyncio.Event().wait()
        return await whole(self, *args, cut=cut)  # type: ignore[arg-type]

    monkeypatch.setattr(Embedder, "embed", stuck)
    async with asyncio.TaskGroup() as group:
        vectors = place.vectors.embed(place.entry, [IDS] * 3, None, cut=False, read=values.append)
        leaves = group.create_task(vectors, name="vectors")
        await begun.wait()
        leaves.cancel()
    assert values == [len(IDS)] * 2


@pytest.mark.parametrize("n_texts", [1, 2])
async def test_the_text_that_is_read_is_read_to_its_end_before_memory_is_given_up(
    place: Place, monkeypatch: pytest.MonkeyPatch, n_texts: int
) -> None:
    reads, may_read = asyncio.Event(), asyncio.Event()
    whole = Embedder.embed

    async def slow(self: Embedder, *args: object, cut: bool) -> object:
        reads.set()
        await may_read.wait()
        return await whole(self, *args, cut=cut)  # type: ignore[arg-type]

    monkeypatch.setattr(Embedder, "embed", slow)
    async with asyncio.TaskGroup() as group:
        made = group.create_task(code(place.embed(n_texts)), name="vectors")
        await reads.wait()
        assert is_needed(_snapshot(place), None)
        comes = group.create_task(place.vectors.make_room(place.most), name="a model that writes")
        await asyncio.sleep(0.05)
        assert not comes.done()
        may_read.set()
    assert made.result() == ("" if n_texts == 1 else "embedding_gave_way")
    assert place.vectors.held is None
    assert not is_needed(_snapshot(place), None)


async def test_a_hand_ends_vectors_and_loads_at_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = asyncio.Event()

    async def never(self: Embedder, *_: object, cut: bool) -> object:
        reads.set()
        raise await self._worker.wait_dead()

    with monkeypatch.context() as patched:
        patched.setattr(Embedder, "embed", never)
        async with asyncio.TaskGroup() as group:
            both = [group.create_task(code(place.embed()), name=f"vectors {n}") for n in range(2)]
            await reads.wait()
            assert await place.vectors.unload(place.entry.model.id) == "bert"
        assert [task.result() for task in both] == ["worker_closed", "load_stopped"]
    assert await place.vectors.unload() is None

    begins, ends = asyncio.Event(), asyncio.Event()

    async def waits(*_: object) -> Embedder:
        begins.set()
        try:
            await asyncio.Event().wait()
        finally:
            ends.set()
        raise AssertionError("it was not cancelled")

    monkeypatch.setattr(Embedder, "open", waits)
    for end in (place.vectors.unload, lambda: place.vectors.make_room(place.most)):
        begins.clear()
        async with asyncio.TaskGroup() as group:
            loads = group.create_task(code(place.load()), name="a load")
            await begins.wait()
            took, comes = place.vectors.uses()
            assert took == comes > 0
            await end()
            assert ends.is_set()
        assert loads.result() == "load_stopped"
        assert place.vectors.held is None


async def test_nobody_asks_and_it_goes_unless_a_person_wished_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.02)
    await place.embed()
    held = place.vectors.held
    assert held is not None
    assert held.embedder is not None
    process = psutil.Process(held.embedder._worker.pid)
    assert process.nice() > psutil.Process().nice()  # answers go first
    async with asyncio.timeout(60):
        while place.vectors.held is not None:  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)
    await place.load()
    assert await place.embed() == tiny_bert.WIDTH
    await asyncio.sleep(0.1)
    assert place.vectors.held


async def test_one_that_died_is_loaded_again(place: Place) -> None:
    await place.embed()
    held = place.vectors.held
    assert held is not None
    assert held.embedder is not None
    held.embedder.kill()
    await held.embedder._worker.wait_dead()
    assert place.vectors.uses() == (0, 0)
    assert await place.embed() == tiny_bert.WIDTH


@pytest.mark.parametrize(("n_deaths", "ends"), [(1, ""), (2, "worker_died")])
async def test_one_that_dies_under_a_text_reads_it_again_and_once_only(
    place: Place, monkeypatch: pytest.MonkeyPatch, n_deaths: int, ends: str
) -> None:
    whole, n_read = Embedder.embed, 0

    async def dies(self: Embedder, text: Text, size: int, *, cut: bool) -> Vector:
        nonlocal n_read
        n_read += 1
        if 2 <= n_read < 2 + n_deaths:  # the second text, and what is read in its place
            psutil.Process(self._worker.pid).kill()
            raise await self._worker.wait_dead()
        return await whole(self, text, size, cut=cut)

    monkeypatch.setattr(Embedder, "embed", dies)
    values: list[int] = []
    reads = place.vectors.embed(place.entry, [IDS, IDS[:2], IDS], None, cut=False, read=values.append)
    assert await code(reads) == ends
    assert values == ([4, 2, 4] if not ends else [4])


async def code(work: object) -> str:
    """Return the code of its error."""
    try:
        await work  # type: ignore[misc]
    except AppError as error:
        return error.reason.code
    return ""


def _snapshot(place: Place) -> Snapshot:
    return Snapshot(embeds=place.vectors.describe())
