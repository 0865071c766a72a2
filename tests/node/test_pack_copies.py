"""Engine packs from another machine of the household: over real pinned links, from honest and from hostile machines."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import msgspec
import pytest
from aiohttp import web

from app.api.engine_packs import EngineCopy, EngineOffer
from app.api.requests import CopyEnginePack
from app.core.errors import Busy, Reason, Unreachable
from app.core.household.operations import Role
from app.core.reasons import said
from app.machine.engine_packs.manifest import MANIFEST, MAX_PACK_BYTES
from app.machine.engine_packs.store import InstalledPack, Origin, PackStore, Tested, this_system
from app.machine.hardware.engines import Device
from app.network.traffic_limits import LinkPace
from app.node.engines import engine_packs, pack_copies
from app.node.engines.engine_packs import EnginePackService
from app.node.engines.pack_copies import COPYING, PackCopies
from app.node.engines.pack_offers import PACKS_PATH
from app.node.engines.pack_server import PackServer
from tests.machine.engine_packs.fake_pack import ENGINE, FILES, LIBRARY, folder_pack, manifest, name_of
from tests.network.nodes import HOST_AND_LENDER, Node, Nodes, opened, pair

SECONDS = 30
DATA = bytes(range(256)) * 16384  # 4 MiB
LARGE = {LIBRARY: DATA, "licenses/llama.cpp.txt": b"MIT"}
CARD = Device("Vulkan0", "A card", "gpu", "Vulkan", 5 << 30, 8 << 30)


@pytest.fixture(autouse=True)
def tested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for the self-test, which would need a card, and return what it was asked to test."""
    requests: list[str] = []

    async def self_test(backend: str, libraries: Mapping[str, Path]) -> Tested:
        requests.append(backend)
        return Tested([CARD])

    monkeypatch.setattr(engine_packs, "self_test", self_test)
    monkeypatch.setattr(pack_copies, "this_engine", lambda: ENGINE)
    return requests


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(SECONDS):
        while True:
            if is_so():
                return
            await asyncio.sleep(0.01)


UNSEEN = EngineOffer(
    pack=f"vulkan-{ENGINE}-{this_system()}", built="2026-11-30", size_bytes=len(b"".join(FILES.values()))
)


def order(offer: EngineOffer, den: Node, sha256: str = "", **changes: Any) -> CopyEnginePack:
    """Return what the window orders once a person has agreed to an offer."""
    fields = (den.network.id, sha256 or offer.sha256, offer.pack, offer.built, offer.size_bytes)
    return msgspec.structs.replace(CopyEnginePack(*fields), **changes)


class Ends(NamedTuple):
    """den has packs; attic wants one of them."""

    den: Node
    attic: Node
    source: PackStore
    store: PackStore
    copies: PackCopies
    choices: Any
    noted: list[Reason]
    giver: EnginePackService
    runs: asyncio.Task[None]

    async def begin(self) -> EngineOffer:
        """Begin to copy the pack that is offered, and return the offer once some of it is here."""
        offer = await self.offer()
        await self.copies.start(order(offer, self.den))
        await self.until_some_of_it_is_here()
        return offer

    async def offer(self) -> EngineOffer:
        (offer,) = (await self.copies.offers()).offers
        return offer

    async def copied(self, sha256: str = "") -> EngineCopy:
        """Copy the pack that is offered, or one by its hash, and return how that ended."""
        offers = (await self.copies.offers()).offers
        seen = next((offer for offer in offers if not sha256 or offer.sha256 == sha256), UNSEEN)
        await self.copies.start(order(seen, self.den, sha256))
        return await self.ended()

    async def ended(self) -> EngineCopy:
        await until(lambda: self.copies.now is not None and self.copies.now.is_over)
        assert self.copies.now is not None
        return self.copies.now

    async def until_some_of_it_is_here(self) -> None:
        await until(lambda: self.copies.now is not None and self.copies.now.done_bytes > 0)

    def left(self) -> list[Path]:
        return sorted(path for path in self.store._folder.glob(f"{COPYING}*"))


@dataclass
class Gate:
    """Lets some bytes of a transfer pass, and holds the rest until it is opened."""

    passes_bytes: int = 1 << 40
    open: asyncio.Event = field(default_factory=asyncio.Event)
    holds: asyncio.Event = field(default_factory=asyncio.Event)  # set once something waits at the gate

    def pace(self) -> LinkPace:
        pace = LinkPace(clock=lambda: 0.0, sleep=self._sleep)  # a bucket that is never filled again
        pace.limit(100)
        self._left = self.passes_bytes // pace.slice_bytes
        return pace

    async def _sleep(self, _: float) -> None:
        self._left -= 1
        if self._left < 0:
            self.holds.set()
            await self.open.wait()

    async def let_a_manifest_pass(self) -> None:
        await self.holds.wait()
        self._left = 1


class Household:
    """Opens both machines; what den serves can be replaced before."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.gate = Gate()
        self.served: Callable[[], web.Application] | None = None  # instead of the honest routes
        self.nodes: Nodes

    async def open(self, *packs: Path) -> Ends:
        self.source = PackStore(self._folder / "den-engines", engine_version=ENGINE)
        for pack in packs:
            self.source.install(pack)
        self.choices = choices = cast("Any", SimpleNamespace(now=SimpleNamespace(share_models=True, name="den")))
        self.giver = EnginePackService(self.source)
        await self.giver.run()
        pace = self.gate.pace()
        server = PackServer(self.giver, choices, pace, lambda: self.den.network.members)
        self.nodes = await self._stack.enter_async_context(opened(self._folder / "lan"))
        self.nodes.rooms = lambda: {PACKS_PATH: (self.served or server.application)()}
        self.den, attic = await self.nodes.paired("den", "attic")
        self._group = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._stack.callback(self.gate.open.set)
        return await self.receiver(attic)

    async def join(self, name: str, roles: tuple[Role, ...] = HOST_AND_LENDER) -> Node:
        """Open another machine of the household. It offers what den offers."""
        node = await self.nodes.open(name)
        await pair(self.den, node, roles)
        return node

    async def receiver(self, node: Node) -> Ends:
        """Return what runs on a machine that copies, as after a start of its node."""
        folder = self._folder / f"{node.name}-engines"
        store, noted = PackStore(folder, engine_version=ENGINE), list[Reason]()
        copies = PackCopies(node.network, store, EnginePackService(store), folder, lambda: None, noted.append)
        runs = self._group.create_task(copies.run(), name="copies")
        self._stack.callback(runs.cancel)
        await asyncio.sleep(0)  # until it runs
        return Ends(self.den, node, self.source, store, copies, self.choices, noted, self.giver, runs)


@pytest.fixture
async def household(tmp_path: Path) -> AsyncGenerator[Household, None]:
    async with AsyncExitStack() as stack:
        yield Household(tmp_path, stack)


async def test_a_pack_is_offered_confirmed_by_its_hash_copied_and_used(
    household: Household, tested: list[str], tmp_path: Path
) -> None:
    ends = await household.open(folder_pack(tmp_path, LARGE))
    offer = await ends.offer()
    assert (offer.name, offer.label, offer.size_bytes) == ("den", "Vulkan", len(DATA) + 3)
    own = (ends.source._folder / ends.source.find("vulkan").name / MANIFEST).read_bytes()
    assert offer.sha256 == hashlib.sha256(own).hexdigest()
    assert (offer.installed, offer.problem) == (False, None)
    ended = await ends.copied()
    assert (ended.state, ended.problem, ended.done_bytes) == ("done", None, offer.size_bytes)
    pack = ends.store.find("vulkan")
    assert (pack.is_current, pack.problem, tested) == (True, None, ["vulkan"])
    assert pack.origin is not None
    assert (pack.origin.name, pack.origin.machine) == ("den", ends.den.network.id)
    assert ends.store.libraries()["vulkan"].read_bytes() == DATA
    assert (await ends.offer()).installed
    assert ends.left() == []
    assert [said(reason) for reason in ends.noted] == [f"The engine pack {pack.name} was copied from den."]


async def test_the_owner_decides_and_can_end_a_running_copy(household: Household, tmp_path: Path) -> None:
    household.gate.passes_bytes = 2 << 20
    ends = await household.open(folder_pack(tmp_path, LARGE))
    await ends.begin()
    ends.choices.now.share_models = False
    household.gate.open.set()
    ended = await ends.ended()
    assert (ended.state, ended.problem_facts) == ("failed", Reason("pack_not_shared", {"name": "den"}))
    assert (await ends.copies.offers()).offers == []
    assert ends.store.packs() == []


async def test_a_copy_ends_with_the_node_and_the_next_one_goes_on_with_it(household: Household, tmp_path: Path) -> None:
    household.gate.passes_bytes = 2 << 20
    ends = await household.open(folder_pack(tmp_path, LARGE))
    offer = await ends.begin()
    with pytest.raises(Busy, match="pack_copy_running"):
        await ends.copies.start(order(offer, ends.den))
    ends.runs.cancel()
    async with asyncio.timeout(SECONDS):
        await asyncio.wait({ends.runs})
    (left,) = ends.left()
    (part,) = left.glob("*.part")
    kept = part.read_bytes()
    assert 0 < len(kept) < len(DATA)
    assert DATA.startswith(kept)
    assert (await ends.offer()).here_bytes == len(kept)
    household.gate.open.set()
    ends = await household.receiver(ends.attic)
    assert (await ends.copied()).state == "done"
    assert ends.store.libraries()["vulkan"].read_bytes() == DATA


async def test_after_cancel_nothing_is_left(household: Household, tmp_path: Path) -> None:
    household.gate.passes_bytes = 2 << 20
    ends = await household.open(folder_pack(tmp_path, LARGE))
    await ends.begin()
    await ends.copies.cancel()
    assert ends.copies.now is not None
    assert ends.copies.now.state == "canceled"
    assert ends.left() == []
    assert ends.store.packs() == []


async def test_packs_for_another_engine_are_named_and_those_for_another_system_left_out(
    household: Household, tmp_path: Path
) -> None:
    ends = await household.open()
    for number, fields in enumerate(({"engine_version": "0.3.35"}, {"system": "windows-arm64"})):
        source = folder_pack(tmp_path / str(number), **fields)
        shutil.copytree(source, ends.source._folder / name_of(**fields))
    await ends.giver.run()
    theirs = PackStore(ends.source._folder, engine_version="0.3.35")
    ends.source._engine_version = "0.3.35"  # den runs another version of Poolhouse
    await ends.giver.run()
    assert [pack.is_whole for pack in theirs.packs()] == [True, False]
    offer = await ends.offer()
    assert "is for llama.cpp 0.3.35, but this version of Poolhouse has 0.3.36" in (offer.problem or "")
    ended = await ends.copied()
    assert (ended.state, ended.problem_facts and ended.problem_facts.code) == ("failed", "pack_other_engine")
    assert ends.store.packs() == []


async def test_nothing_comes_from_a_guest_or_a_machine_that_is_away(household: Household, tmp_path: Path) -> None:
    ends = await household.open(folder_pack(tmp_path))
    offer = await ends.offer()
    with pytest.raises(Unreachable, match="pack_copy_away"):
        await ends.copies.start(order(offer, ends.den, machine="b" * 64))
    await ends.den.network.set_roles(ends.attic.network.id, [Role.GUEST])
    await until(lambda: Role.HOST not in ends.den.network.members[ends.attic.network.id].roles)
    ended = await ends.copied(offer.sha256)
    assert (ended.state, ended.problem_facts and ended.problem_facts.code) == ("failed", "role_missing_here")
    assert (await ends.copies.offers()).offers == []


@pytest.mark.parametrize("roles", [(Role.GUEST,), (Role.LENDER,)])
async def test_only_a_machine_that_may_use_the_others_gives_packs(
    household: Household, tmp_path: Path, roles: tuple[Role, ...]
) -> None:
    ends = await household.open(folder_pack(tmp_path))
    study = await household.join("study", roles)
    await until(lambda: study.network.id in ends.attic.network.links)
    offer = await ends.offer()  # den's alone, although study has the same routes
    assert offer.name == "den"
    with pytest.raises(Unreachable, match="pack_copy_away"):
        await ends.copies.start(order(offer, ends.den, machine=study.network.id))


async def test_two_machines_copy_at_once_and_nobody_waits_for_the_other(household: Household, tmp_path: Path) -> None:
    household.gate.passes_bytes = 2 << 20
    first = await household.open(folder_pack(tmp_path, LARGE))
    second = await household.receiver(await household.join("study"))
    offer = await first.begin()
    await household.gate.let_a_manifest_pass()
    await second.copies.start(order(offer, first.den))
    await until(lambda: second.copies.now is not None and second.copies.now.total_bytes > 0)
    household.gate.open.set()
    assert ((await first.ended()).state, (await second.ended()).state) == ("done", "done")


async def test_a_copy_waits_while_the_giver_still_sends_to_the_same_machine(
    household: Household, tmp_path: Path
) -> None:
    household.gate.passes_bytes = 2 << 20
    ends = await household.open(folder_pack(tmp_path, LARGE))
    offer = await ends.begin()
    again = await household.receiver(ends.attic)  # as after a power cut, which den has not noticed yet
    again.store._folder.rename(tmp_path / "lost")
    await household.gate.let_a_manifest_pass()
    await again.copies.start(order(offer, ends.den))
    await until(lambda: again.copies.now is not None and again.copies.now.held_up_facts is not None)
    assert again.copies.now is not None
    assert again.copies.now.held_up_facts == Reason("copy_waits", {"name": "den"})
    ends.runs.cancel()
    household.gate.open.set()
    assert (await again.ended()).state == "done"


async def test_rights_that_are_taken_end_a_file_that_is_being_sent(household: Household, tmp_path: Path) -> None:
    household.gate.passes_bytes = 2 << 20
    ends = await household.open(folder_pack(tmp_path, LARGE))
    await ends.begin()
    await ends.den.network.set_roles(ends.attic.network.id, [Role.LENDER])
    await until(lambda: Role.HOST not in ends.den.network.members[ends.attic.network.id].roles)
    household.gate.open.set()
    ended = await ends.ended()
    assert (ended.state, ended.problem_facts and ended.problem_facts.code) == ("failed", "role_missing_here")
    (begun,) = ends.left()
    assert not (begun / LIBRARY).exists()  # the file that was being sent, not only the next one


@pytest.mark.parametrize(
    "lie", [{"pack": "cuda13-0.3.36-linux-x86_64"}, {"built": "2026-12-24"}, {"size_bytes": 43 << 20}]
)
async def test_a_pack_that_differs_from_what_the_person_read_is_not_copied(
    household: Household, tmp_path: Path, lie: dict[str, Any]
) -> None:
    ends = await household.open(folder_pack(tmp_path, LARGE))
    offer = await ends.offer()
    await ends.copies.start(order(offer, ends.den, **lie))
    ended = await ends.ended()
    assert (ended.state, ended.problem_facts and ended.problem_facts.code) == ("failed", "pack_other_than_offered")
    assert (ends.left(), ends.store.packs(), ended.done_bytes) == ([], [], 0)


@pytest.fixture
def slow_test(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Stand in for a self-test that lasts until it is canceled; the event is set once it runs."""
    runs = asyncio.Event()

    async def self_test(backend: str, libraries: Mapping[str, Path]) -> Tested:
        runs.set()
        await asyncio.get_running_loop().create_future()
        return Tested()

    monkeypatch.setattr(engine_packs, "self_test", self_test)
    return runs


async def test_a_cancel_during_the_test_takes_the_pack_away_again(
    household: Household, tmp_path: Path, slow_test: asyncio.Event
) -> None:
    ends = await household.open(folder_pack(tmp_path))
    await ends.copies.start(order(await ends.offer(), ends.den))
    await slow_test.wait()
    assert [pack.is_current for pack in ends.store.packs()] == [False]
    await ends.copies.cancel()
    assert ends.copies.now is not None
    assert ends.copies.now.state == "canceled"
    assert (ends.store.packs(), ends.left()) == ([], [])


async def test_a_node_that_ends_during_the_test_keeps_the_pack_and_does_not_use_it(
    household: Household, tmp_path: Path, slow_test: asyncio.Event
) -> None:
    ends = await household.open(folder_pack(tmp_path))
    await ends.copies.start(order(await ends.offer(), ends.den))
    await slow_test.wait()
    ends.runs.cancel()
    await asyncio.wait({ends.runs})
    assert [(pack.is_whole, pack.is_current) for pack in ends.store.packs()] == [(True, False)]


async def test_a_cancel_that_comes_too_late_says_so(household: Household, tmp_path: Path) -> None:
    ends = await household.open(folder_pack(tmp_path))
    used = ends.store.use

    def use(name: str) -> InstalledPack:
        loop.call_soon_threadsafe(canceled.set)
        time.sleep(0.2)
        return used(name)

    loop, canceled = asyncio.get_running_loop(), asyncio.Event()
    ends.store.use = use  # type: ignore[method-assign]
    await ends.copies.start(order(await ends.offer(), ends.den))
    await canceled.wait()
    await ends.copies.cancel()
    assert ends.copies.now is not None
    assert ends.copies.now.state == "done"
    assert ends.store.find("vulkan").is_current


async def test_a_copy_begun_during_a_cancel_is_a_new_one(
    household: Household, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    household.gate.passes_bytes = 2 << 20
    ends = await household.open(folder_pack(tmp_path, LARGE))
    offer = await ends.begin()
    deletes = threading.Event()
    rmtree = shutil.rmtree

    def slow(*args: Any, **how: Any) -> None:
        deletes.set()
        time.sleep(0.5)
        rmtree(*args, **how)

    monkeypatch.setattr("app.node.engines.pack_copies.shutil.rmtree", slow)
    async with asyncio.TaskGroup() as group:
        group.create_task(ends.copies.cancel(), name="cancel")
        await until(deletes.is_set)
        household.gate.open.set()
        await ends.copies.start(order(offer, ends.den))
    assert (await ends.ended()).state == "done"
    assert ends.store.find("vulkan").is_current


async def test_a_disk_that_fills_up_meanwhile_is_told_with_its_own_numbers(
    household: Household, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ends = await household.open(folder_pack(tmp_path, {"a.txt": b"first", LIBRARY: DATA}))
    offer = await ends.offer()

    def usage(_: Path) -> Any:
        is_late = ends.copies.now is not None and ends.copies.now.done_bytes >= 5
        return SimpleNamespace(free=(65 << 20) if is_late else 1 << 40)

    monkeypatch.setattr("app.node.engines.pack_copies.shutil.disk_usage", usage)
    ended = await ends.copied(offer.sha256)
    needs: dict[str, str | int | float | Reason] = {
        "pack": offer.pack,
        "needs_bytes": len(DATA) + (64 << 20),
        "free_bytes": 65 << 20,
    }
    assert ended.problem_facts == Reason("pack_no_room", needs)


async def test_begun_copies_stay_for_days_and_as_long_as_there_is_room(
    household: Household, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ends = await household.open(folder_pack(tmp_path))
    old, young = (ends.store._folder / f"{COPYING}{name}" for name in ("old", "young"))
    for begun in (old, young):
        begun.mkdir(parents=True)
        (begun / "x.part").write_bytes(b"x")
    for path in (old, old / "x.part"):
        os.utime(path, (1, 1))
    again = await household.receiver(ends.attic)
    await until(lambda: not old.exists())
    assert (await again.copied()).state == "done"
    assert young.exists()
    again.store.remove("vulkan")
    room = SimpleNamespace(free=64 << 20)
    monkeypatch.setattr("app.machine.engine_packs.pack_reader.shutil.disk_usage", lambda _: room)
    assert (await again.copied()).state == "failed"
    assert not young.exists()


async def test_a_damaged_pack_is_offered_again_and_mended_by_a_copy(household: Household, tmp_path: Path) -> None:
    ends = await household.open(folder_pack(tmp_path))
    await ends.copied()
    pack = ends.store._folder / ends.store.find("vulkan").name
    (pack / MANIFEST).write_bytes(b"")  # as after a power cut
    assert not (await ends.offer()).installed
    assert (await ends.copied()).state == "done"
    (pack / LIBRARY).write_bytes(b"damaged")
    assert not (await ends.offer()).installed
    assert (await ends.copied()).state == "done"
    (mended,) = ends.store.packs()
    assert (mended.is_current, mended.problem) == (True, None)


async def test_offers_cost_the_giver_no_look_at_its_disk(household: Household, tmp_path: Path) -> None:
    ends = await household.open(folder_pack(tmp_path))
    with ends.source._lock:  # as during an installation, which may take minutes
        assert (await ends.offer()).name == "den"


async def test_a_pack_tells_from_where_it_came_first(household: Household, tmp_path: Path) -> None:
    ends = await household.open()
    ends.source._folder.mkdir()
    copied = folder_pack(tmp_path).rename(ends.source._folder / f"{COPYING}x")
    ends.source.adopt(copied, Origin("f" * 64, "attic", 0.0))
    await ends.giver.run()
    assert (await ends.offer()).copied_from == "attic"


def hostile(lie: dict[str, Any]) -> tuple[Callable[[], web.Application], str]:
    """Return what makes the routes of a machine that gives what it likes, and the hash of its manifest."""
    data = json.dumps(lie).encode()
    sha256 = hashlib.sha256(data).hexdigest()

    async def send(request: web.Request) -> web.Response:
        return web.Response(body=data if request.match_info["number"] == "manifest" else b"x")

    def application() -> web.Application:
        made = web.Application()
        made.add_routes([web.get("/{sha256}/{number}", send)])
        return made

    return application, sha256


def of_files(*paths: str) -> dict[str, Any]:
    """Return a manifest in which each of these files has 4 GiB."""
    return {**manifest(), "files": [{"path": path, "size_bytes": 4 << 30, "sha256": "a" * 64} for path in paths]}


@pytest.mark.parametrize(
    ("lie", "code"),
    [
        (manifest({"../../autostart": b"x", LIBRARY: b"x"}), "pack_unsafe"),
        (manifest({"/etc/cron.d/x": b"x", LIBRARY: b"x"}), "pack_unsafe"),
        (manifest({"pack.json": b"x", LIBRARY: b"x"}), "pack_unsafe"),
        (manifest({"a": b"x", "a/b": b"x", LIBRARY: b"x"}), "pack_no_manifest"),
        (manifest(system="plan9-mips"), "pack_other_system"),
        (manifest(engine_version="0.3.99"), "pack_other_engine"),
        (manifest(backend="opencl"), "pack_unknown_backend"),
        (manifest(format=99), "pack_newer_format"),
        (manifest(libraries=["other.so"]), "pack_incomplete"),
        ({"files": []}, "pack_no_manifest"),
        (manifest(), "pack_wrong_hash"),  # fewer bytes than its manifest says
        (manifest({LIBRARY: b"y", "a": bytes(17)}), "pack_wrong_hash"),  # another byte
        (of_files(LIBRARY, LIBRARY), "pack_no_manifest"),
        (of_files(LIBRARY, "b", "c"), "pack_too_large"),
    ],
)
async def test_a_hostile_machine_gets_nothing_into_the_store(
    household: Household, lie: dict[str, Any], code: str, tested: list[str]
) -> None:
    household.served, sha256 = hostile(lie)
    ends = await household.open()
    ended = await ends.copied(sha256)
    assert (ended.state, ended.problem_facts and ended.problem_facts.code) == ("failed", code)
    assert ended.problem
    if code == "pack_wrong_hash":  # noticed at the first file, before another one is fetched
        assert ended.problem_facts is not None
        assert ended.problem_facts.facts["file"] == LIBRARY
    assert (ends.store.packs(), tested) == ([], [])
    assert not (ends.store._folder.parent / "autostart").exists()


async def test_another_manifest_than_the_confirmed_one_is_refused(household: Household) -> None:
    household.served, _ = hostile(manifest())
    ends = await household.open()
    ended = await ends.copied("c" * 64)
    assert (ended.problem_facts and ended.problem_facts.code) == "pack_wrong_hash"
    assert ends.store.packs() == []


@pytest.mark.parametrize("free_bytes", [0, 64 << 20])
async def test_without_room_nothing_is_fetched(
    household: Household, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free_bytes: int
) -> None:
    ends = await household.open(folder_pack(tmp_path, LARGE))
    offer = await ends.offer()
    room = SimpleNamespace(free=free_bytes)
    monkeypatch.setattr("app.machine.engine_packs.pack_reader.shutil.disk_usage", lambda _: room)
    ended = await ends.copied(offer.sha256)
    assert (ended.problem_facts and ended.problem_facts.code) == "pack_no_room"
    assert ended.done_bytes == 0


async def test_what_was_damaged_here_meanwhile_is_not_used_and_the_next_try_starts_afresh(
    household: Household, tmp_path: Path
) -> None:
    ends = await household.open(folder_pack(tmp_path, LARGE))
    offer = await ends.offer()
    half = ends.store._folder / f"{COPYING}{offer.sha256[:16]}"
    half.mkdir(parents=True)
    (half / LIBRARY).write_bytes(bytes(len(DATA)))  # of the right size
    first = await ends.copied(offer.sha256)
    assert (first.problem_facts and first.problem_facts.code) == "pack_wrong_hash"
    (left,) = ends.left()
    assert not (left / LIBRARY).exists()  # only this file is fetched again
    assert (left / "licenses" / "llama.cpp.txt").exists()
    assert (await ends.copied(offer.sha256)).state == "done"


async def test_odd_offers_count_as_none(household: Household) -> None:
    async def offered(_: web.Request) -> web.Response:
        return web.json_response({"packs": [{"sha256": "x", "size_bytes": MAX_PACK_BYTES + 1}]})

    def application() -> web.Application:
        made = web.Application()
        made.add_routes([web.get("/offered", offered)])
        return made

    household.served = application
    ends = await household.open()
    assert (await ends.copies.offers()).offers == []
