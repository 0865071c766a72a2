"""Engine packs from another machine of the household: over real pinned links, from honest and from hostile machines."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from app.api.engine_packs import EngineCopy, EngineOffer
from app.core.errors import Busy, Reason, Unreachable
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.ids import machine_id
from app.core.reasons import said
from app.machine.engine_packs.manifest import MANIFEST, MAX_PACK_BYTES
from app.machine.engine_packs.store import PackStore, Tested
from app.machine.hardware.engines import Device
from app.network.traffic_limits import LinkPace
from app.node import engine_packs, pack_copies
from app.node.engine_packs import EnginePackService
from app.node.pack_copies import COPYING, PackCopies, may_give
from app.node.pack_offers import PACKS_PATH
from app.node.pack_server import PackServer
from tests.machine.engine_packs.fake_pack import ENGINE, LIBRARY, folder_pack, manifest, name_of
from tests.network.nodes import Node, opened

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


class Ends(NamedTuple):
    """den has packs; attic wants one of them."""

    den: Node
    attic: Node
    source: PackStore
    store: PackStore
    copies: PackCopies
    choices: Any
    noted: list[Reason]

    async def offer(self) -> EngineOffer:
        (offer,) = (await self.copies.offers()).offers
        return offer

    async def copied(self, sha256: str = "") -> EngineCopy:
        """Copy the pack that is offered, or one by its hash, and return how that ended."""
        await self.copies.start(self.den.network.id, sha256 or (await self.offer()).sha256)
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

    def pace(self) -> LinkPace:
        pace = LinkPace(clock=lambda: 0.0, sleep=self._sleep)  # a bucket that is never filled again
        pace.limit(100)
        self._left = self.passes_bytes // pace.slice_bytes
        return pace

    async def _sleep(self, _: float) -> None:
        self._left -= 1
        if self._left < 0:
            await self.open.wait()


class Household:
    """Opens both machines; what den serves can be replaced before."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.gate = Gate()
        self.served: Callable[[], web.Application] | None = None  # instead of the honest routes

    async def open(self, *packs: Path) -> Ends:
        source = PackStore(self._folder / "den-engines", engine_version=ENGINE)
        for pack in packs:
            source.install(pack)
        choices: Any = SimpleNamespace(now=SimpleNamespace(share_models=True, name="den"))
        server = PackServer(source, choices, self.gate.pace())
        nodes = await self._stack.enter_async_context(opened(self._folder / "lan"))
        nodes.rooms = lambda: {PACKS_PATH: (self.served or server.application)()}
        den, attic = await nodes.paired("den", "attic")
        folder = self._folder / "attic-engines"
        store = PackStore(folder, engine_version=ENGINE)
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        noted: list[Reason] = []
        service = EnginePackService(store)
        copies = PackCopies(attic.network, store, service, folder, group, lambda: None, noted.append)
        self._stack.callback(self.gate.open.set)
        return Ends(den, attic, source, store, copies, choices, noted)


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
    offer = await ends.offer()
    await ends.copies.start(offer.machine, offer.sha256)
    await ends.until_some_of_it_is_here()
    ends.choices.now.share_models = False
    household.gate.open.set()
    ended = await ends.ended()
    assert (ended.state, ended.problem_facts) == ("failed", Reason("pack_not_shared", {"name": "den"}))
    assert (await ends.copies.offers()).offers == []
    assert ends.store.packs() == []


async def test_an_interrupted_copy_goes_on_where_it_ended(household: Household, tmp_path: Path) -> None:
    household.gate.passes_bytes = 2 << 20
    ends = await household.open(folder_pack(tmp_path, LARGE))
    offer = await ends.offer()
    await ends.copies.start(offer.machine, offer.sha256)
    with pytest.raises(Busy, match="pack_copy_running"):
        await ends.copies.start(offer.machine, offer.sha256)
    await ends.until_some_of_it_is_here()
    task = ends.copies._task
    assert task is not None
    task.cancel()  # as when the node ends
    await asyncio.wait({task})
    (left,) = ends.left()
    (part,) = left.glob("*.part")
    kept = part.read_bytes()
    assert 0 < len(kept) < len(DATA)
    assert DATA.startswith(kept)
    assert (await ends.offer()).here_bytes == len(kept)
    household.gate.open.set()
    assert (await ends.copied()).state == "done"
    assert ends.store.libraries()["vulkan"].read_bytes() == DATA


async def test_after_cancel_nothing_is_left(household: Household, tmp_path: Path) -> None:
    household.gate.passes_bytes = 2 << 20
    ends = await household.open(folder_pack(tmp_path, LARGE))
    offer = await ends.offer()
    await ends.copies.start(offer.machine, offer.sha256)
    await ends.until_some_of_it_is_here()
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
    theirs = PackStore(ends.source._folder, engine_version="0.3.35")
    ends.source._engine_version = "0.3.35"  # den runs another version of Poolhouse
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
        await ends.copies.start("b" * 64, offer.sha256)
    await ends.den.network.set_roles(ends.attic.network.id, [Role.GUEST])
    await until(lambda: Role.HOST not in ends.den.network.members[ends.attic.network.id].roles)
    ended = await ends.copied(offer.sha256)
    assert (ended.state, ended.problem_facts and ended.problem_facts.code) == ("failed", "role_missing_here")
    assert (await ends.copies.offers()).offers == []


@pytest.mark.parametrize(
    ("roles", "gives"),
    [({Role.HOST}, True), ({Role.HOST, Role.GUEST}, True), ({Role.GUEST}, False), ({Role.LENDER}, False)],
)
def test_only_a_machine_that_may_use_the_others_gives_packs(roles: set[Role], gives: bool) -> None:
    assert may_give(Member(machine_id("a" * 64), b"", "den", frozenset(roles))) is gives


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
        (manifest({"a": b"x", "a/b": b"x", LIBRARY: b"x"}), "disk_failed"),
        (manifest(system="plan9-mips"), "pack_other_system"),
        (manifest(engine_version="0.3.99"), "pack_other_engine"),
        (manifest(backend="opencl"), "pack_unknown_backend"),
        (manifest(format=99), "pack_newer_format"),
        (manifest(libraries=["other.so"]), "pack_incomplete"),
        ({"files": []}, "pack_no_manifest"),
        (manifest(), "pack_wrong_hash"),  # other bytes than its manifest says
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
    assert ends.left() == []
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
