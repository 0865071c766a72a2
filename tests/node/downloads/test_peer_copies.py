"""A whole model from another machine of the household: over real pinned links, checked by its hash as it arrives."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs

from app.api.downloads import Download
from app.catalog.model_catalog import Catalog, OfferedPart
from app.catalog.transfers import file_transfer
from app.catalog.transfers.download_records import joint_hash
from app.catalog.transfers.file_transfer import LEFT_FREE_BYTES
from app.core.errors import BadInput, DoesNotFit, Reason
from app.core.reasons import said
from app.network.network import Network
from app.network.peer.listener import MODELS_PATH
from app.network.traffic_limits import LinkPace
from app.node.downloads import downloads
from app.node.downloads.download_source import PeerCopy
from app.node.downloads.model_peers import ModelServer, PeerCopies
from testbed import tiny
from tests.catalog.hub_server import HubServer, closed_hub
from tests.catalog.test_parts import in_parts
from tests.network.nodes import Node, opened
from tests.node.download_place import Place, catalog_of, running

Json = dict[str, Any]
MBIT = 100
PASSES_BYTES = 3 << 19  # more than the receiver gathers before it writes


@dataclass
class Source:
    """The files that den offers, and when: its transfer pauses until `go_on`."""

    files: tuple[Path, ...]
    sha256: str
    choices: Any = field(default_factory=lambda: SimpleNamespace(now=SimpleNamespace(share_models=True, name="den")))
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)
    _left: int = 0  # slices that may still pass

    def giving(self) -> ModelServer:
        pace = LinkPace(clock=lambda: 0.0, sleep=self._sleep)  # a bucket that is never filled again
        pace.limit(MBIT)
        self._left = PASSES_BYTES // pace.slice_bytes
        return ModelServer(self._has, self.choices, pace, str, lambda: None)

    def _has(self, hashes: Sequence[str]) -> dict[str, tuple[Path, ...]]:
        self.asked += hashes
        return {self.sha256: self.files} if self.sha256 in hashes else {}

    async def _sleep(self, _: float) -> None:
        self._left -= 1
        if self._left < 0:
            await self.go_on.wait()


@dataclass
class Household:
    """den has the model, attic wants it; the hub says nothing to anybody."""

    source: Source
    den: Node
    attic: Node
    place: Place
    copy: PeerCopy
    catalog: Catalog

    async def start(self) -> Download:
        return await self.place.start(copy=self.copy)

    def file_of(self, done: Download) -> Path:
        return Path(self.place.shelf.get(done.model or "").path)

    async def half(self) -> Download:
        """A copy that has begun and stands still."""
        key = (await self.start()).id
        return await self.place.until(key, lambda item: item.done_bytes > 0)


@pytest.fixture
async def home(server: HubServer, tmp_path: Path) -> AsyncGenerator[Household, None]:
    model = tmp_path / "given.gguf"
    model.write_bytes(server.data)
    source = Source((model,), server.sha256)
    async with AsyncExitStack() as stack:
        nodes = await stack.enter_async_context(opened(tmp_path / "lan"))
        giving = source.giving()  # of den, and asked of nobody else
        nodes.rooms = lambda: {MODELS_PATH: giving.application()}
        den, attic = await nodes.paired("den", "attic")
        closed = HubServer(server.data, port=int(closed_hub().endpoint.rpartition(":")[2]))
        catalog = catalog_of(server, server.sha256, len(server.data))
        copies = PeerCopies(attic.network)
        place = Place(closed, tmp_path / "attic", catalog, copies.files_of)
        await stack.enter_async_context(running(place))
        try:
            yield Household(source, den, attic, place, PeerCopy(den.network.id, "den"), catalog)
        finally:
            source.go_on.set()


async def test_it_arrives_whole_and_nobody_else_is_asked(home: Household) -> None:
    home.source.go_on.set()
    begun = await home.start()
    assert (begun.source, begun.machine) == ("den", home.den.network.id)
    done = await home.place.ended(begun.id)
    assert (done.state, done.reason) == ("done", None)
    assert (done.sha256, done.hash_from) == (home.source.sha256, "catalog")
    path = home.file_of(done)
    assert path.name == f"{home.source.sha256}.gguf"
    assert path.read_bytes() == home.place.server.data


async def test_paused_and_gone_on_with_at_the_true_value(home: Household) -> None:
    half = await home.half()
    paused = await home.place.downloads.pause(half.id)
    assert 0 < paused.done_bytes < len(home.place.server.data)
    part = home.place.files / f"{half.id}.part"
    assert part.stat().st_size == paused.done_bytes
    kept = part.read_bytes()
    home.source.go_on.set()
    await home.place.downloads.resume(half.id)
    done = await home.place.ended(half.id)
    assert done.state == "done"
    assert home.file_of(done).read_bytes().startswith(kept)


async def test_cancelled_nothing_is_left_of_it(home: Household) -> None:
    half = await home.half()
    await home.place.downloads.remove(half.id)
    assert not list(home.place.files.iterdir())


async def test_half_a_copy_is_gone_on_with_from_the_hub(home: Household) -> None:
    """The same bytes: only what is missing is asked for."""
    half = await home.half()
    now = await home.place.start()
    assert (now.machine, now.source) == (None, home.place.server.hub.host)
    assert now.done_bytes >= half.done_bytes
    back = await home.start()
    assert back.machine == home.den.network.id
    home.source.go_on.set()
    assert (await home.place.ended(back.id)).state == "done"


async def test_bytes_that_are_not_the_promised_ones_are_thrown_away(home: Household) -> None:
    home.source.files[0].write_bytes(b"x" + home.place.server.data[1:])
    home.source.go_on.set()
    done = await home.place.ended((await home.start()).id)
    assert (done.state, done.code) == ("failed", "download_damaged")
    assert not home.place.shelf.entries()
    assert not list(home.place.files.glob("*.gguf"))


async def test_a_file_of_another_size_is_refused_before_its_bytes(home: Household) -> None:
    home.source.files[0].write_bytes(home.place.server.data + b"more")
    done = await home.place.ended((await home.start()).id)
    assert (done.state, done.code, done.done_bytes) == (
        "failed", "download_other_size", 0,
    )  # fmt: skip


async def test_a_full_disk_is_said_before_the_first_byte(home: Household) -> None:
    home.place.disk.free = LEFT_FREE_BYTES
    with pytest.raises(DoesNotFit) as refused:
        await home.start()
    assert refused.value.reason.code == "download_no_room"
    assert not home.source.asked


async def test_nothing_is_given_where_the_owner_does_not_allow_it(home: Household) -> None:
    home.source.choices.now.share_models = False
    assert not await PeerCopies(home.attic.network).holders_of(home.source.sha256)
    done = await home.place.ended((await home.start()).id)
    assert (done.code, (done.reason or "").split(" ")[0]) == ("copy_not_offered", "den")
    assert not home.source.asked


async def test_the_owner_ends_a_copy_in_its_middle(home: Household) -> None:
    half = await home.half()
    home.source.choices.now.share_models = False
    home.source.go_on.set()
    done = await home.place.ended(half.id)
    assert done.code == "copy_not_offered"
    assert done.done_bytes < len(home.place.server.data)


async def test_who_is_removed_gets_nothing_more_and_keeps_what_came(home: Household) -> None:
    half = await home.half()
    await home.den.network.remove(home.attic.network.id)
    ended = await home.place.ended(half.id)
    assert ended.state == "failed"
    assert ended.code != "bug"
    assert half.done_bytes <= ended.done_bytes < len(home.place.server.data)


async def test_one_at_a_time_the_next_one_says_that_it_waits(home: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_transfer, "TURN_SECONDS", 0.02)
    first = await home.half()
    copies = PeerCopies(home.attic.network)
    other = Place(home.place.server, home.place.folder / "b", home.catalog, copies.files_of)
    async with running(other):
        key = (await other.start(copy=home.copy)).id
        waits = said(Reason(file_transfer.MY_TURN, {"name": "den"}))
        await other.until(key, lambda item: item.held_up == waits)
        home.source.go_on.set()
        assert (await home.place.ended(first.id)).state == "done"
        assert (await other.ended(key)).state == "done"


async def test_who_has_it_is_known_by_its_hash_alone(home: Household) -> None:
    copies = PeerCopies(home.attic.network)
    assert await copies.holders_of(home.source.sha256) == [home.copy]
    assert not await copies.holders_of("0" * 64)


@pytest.mark.parametrize(("promised", "expected"), [(None, None), ("1" * 64, "2" * 64)])
async def test_a_file_that_nobody_knows_by_its_hash_is_not_copied(
    server: HubServer, tmp_path: Path, promised: str | None, expected: str | None
) -> None:
    async with running(Place(server, tmp_path, catalog_of(server, promised))) as place:
        with pytest.raises(BadInput) as refused:
            await place.start(copy=PeerCopy("a" * 64, "den", expected))
        assert refused.value.reason.code == "copy_no_hash"


async def test_a_model_in_several_files_comes_file_by_file(home: Household, tmp_path: Path) -> None:
    names = [f"big-Q8_0-{number:05}-of-00003.gguf" for number in (1, 2, 3)]
    single = tiny.llama(tmp_path / "one.gguf", layers=4, width=256, ffn=1024)
    paths = in_parts(single, tmp_path)
    facts = [OfferedPart(len(d), hashlib.sha256(d).hexdigest()) for d in map(Path.read_bytes, paths)]
    whole = str(joint_hash(part.sha256 for part in facts))
    home.source.files, home.source.sha256 = tuple(paths), whole
    offer = home.catalog.models[0]
    file = structs.replace(
        offer.files[0], file=names[0], parts=tuple(facts), size_bytes=sum(fact.size_bytes for fact in facts)
    )  # fmt: skip
    known = structs.replace(home.catalog, models=(structs.replace(offer, files=(file,)),))
    copies = PeerCopies(home.attic.network)
    home.source.go_on.set()
    async with running(Place(home.place.server, tmp_path / "b", known, copies.files_of)) as place:
        done = await place.ended((await place.start(file=names[1], copy=home.copy)).id)
        assert (done.state, done.reason, done.sha256) == ("done", None, whole)
        assert place.shelf.entries()
    unknown = catalog_of(home.place.server, None)
    async with running(Place(home.place.server, tmp_path / "c", unknown)) as place:
        with pytest.raises(BadInput):  # no hash of each file is known
            await place.start(file=names[0], copy=replace(home.copy, sha256=whole))


async def test_a_copy_whose_machine_comes_back_goes_on_by_itself(
    home: Household, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "STALL_LOOK_SECONDS", 0.02)
    network = SimpleNamespace(links={}, members={})  # den is away
    copies = PeerCopies(cast("Network", network))
    place = Place(home.place.server, tmp_path / "b", home.catalog, copies.files_of, copies.is_near)
    home.source.go_on.set()
    async with running(place):
        key = (await place.start(copy=home.copy)).id
        failed = await place.ended(key)
        assert (failed.code, (failed.reason or "").split(" ")[0]) == ("copy_away", "den")
        network.links, network.members = home.attic.network.links, home.attic.network.members
        assert (await place.until(key, lambda item: item.state == "done")).source == "den"
