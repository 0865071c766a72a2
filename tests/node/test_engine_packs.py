"""The node's engine packs: tested before they are used, with a fake test; and the routes of a real node."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import AppError, BadInput, Damaged, Reason, Refused
from app.machine.engine_packs.store import PackStore, Tested
from app.machine.hardware.engines import Device
from app.node import start
from app.node.engines import engine_packs
from app.node.engines.engine_packs import EnginePackService
from app.node.engines.pack_copies import COPYING
from tests.machine.engine_packs.fake_pack import ENGINE, FILES, LIBRARY, folder_pack, name_of
from tests.node.pool import BUSY, END_SECONDS, node, paired

CARD = Device("Vulkan0", "A card", "gpu", "Vulkan", 5 << 30, 8 << 30)
NO_CARD = Tested(failure=Reason("pack_no_device", {"backend": "Vulkan"}))


class FakeTest:
    """Stands in for the self-test: answers what it is told to, and counts."""

    def __init__(self) -> None:
        self.answer, self.count = Tested([CARD]), 0

    async def __call__(self, backend: str, libraries: Mapping[str, Path]) -> Tested:
        assert [path.name for path in libraries.values()] == [LIBRARY]
        self.count += 1
        return self.answer


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch) -> FakeTest:
    fake = FakeTest()
    monkeypatch.setattr(engine_packs, "self_test", fake)
    return fake


@pytest.fixture
def service(tmp_path: Path) -> EnginePackService:
    return EnginePackService(PackStore(tmp_path / "engines", engine_version=ENGINE))


async def test_a_pack_that_passes_its_test_is_used(
    service: EnginePackService, outcome: FakeTest, tmp_path: Path
) -> None:
    answer = await service.add(str(folder_pack(tmp_path)))
    (pack,) = answer.packs
    assert answer.changed == [pack.name] == [name_of()]
    assert (pack.current, pack.problem, pack.label, pack.engine_version) == (True, None, "Vulkan", ENGINE)
    assert [(device.description, device.total_bytes) for device in pack.devices] == [("A card", 8 << 30)]
    assert list(service.libraries) == ["vulkan"]
    again = EnginePackService(service._store)
    assert again.libraries == {}
    await again.run()
    assert again.libraries == service.libraries
    assert (await service.remove("vulkan")).packs == []
    assert service.libraries == {}


async def test_a_pack_that_fails_stays_unused_until_it_passes(
    service: EnginePackService, outcome: FakeTest, tmp_path: Path
) -> None:
    outcome.answer = NO_CARD
    (pack,) = (await service.add(str(folder_pack(tmp_path)))).packs
    assert (pack.current, pack.problem_facts) == (False, NO_CARD.failure)
    assert "No graphics card was found" in (pack.problem or "")
    with pytest.raises(Refused, match="pack_no_device"):
        await service.use("vulkan")
    outcome.answer = Tested([CARD])  # somebody installed the driver
    assert (await service.use("vulkan")).packs[0].current
    assert list(service.libraries) == ["vulkan"]
    outcome.answer = NO_CARD  # and somebody removed it
    assert (await service.test()).packs[0].current
    assert service.libraries == {}
    outcome.answer = Tested([CARD])
    await service.test("vulkan")
    assert list(service.libraries) == ["vulkan"]


async def test_the_earlier_pack_is_kept_if_the_new_one_fails(
    service: EnginePackService, outcome: FakeTest, tmp_path: Path
) -> None:
    await service.add(str(folder_pack(tmp_path / "old")))
    outcome.answer = NO_CARD
    await service.add(str(folder_pack(tmp_path / "new", {LIBRARY: b"newer"})))
    assert service.libraries["vulkan"].read_bytes() == FILES[LIBRARY]
    with pytest.raises(Refused, match="pack_no_previous"):
        await service.roll_back("vulkan")


async def test_a_rollback_and_back(service: EnginePackService, outcome: FakeTest, tmp_path: Path) -> None:
    for name, content in (("old", b"old"), ("new", b"new")):
        await service.add(str(folder_pack(tmp_path / name, {LIBRARY: content})))
    assert service.libraries["vulkan"].read_bytes() == b"new"
    await service.roll_back("vulkan")
    assert service.libraries["vulkan"].read_bytes() == b"old"
    await service.roll_back("vulkan")
    assert service.libraries["vulkan"].read_bytes() == b"new"


async def test_a_damaged_pack_is_never_loaded(service: EnginePackService, outcome: FakeTest, tmp_path: Path) -> None:
    await service.add(str(folder_pack(tmp_path)))
    service.libraries["vulkan"].write_bytes(FILES[LIBRARY].swapcase())
    (pack,) = (await service.test("vulkan")).packs
    assert (outcome.count, service.libraries) == (1, {})
    assert "differs from the file" in (pack.problem or "")
    with pytest.raises(AppError, match="pack_wrong_hash"):
        await service.use("vulkan")


async def test_a_back_end_without_packs_is_named(service: EnginePackService, outcome: FakeTest) -> None:
    assert (await service.test()).packs == []
    with pytest.raises(Refused, match="pack_none_for"):
        await service.test("opencl")


async def test_the_routes_of_a_node(tmp_path: Path) -> None:
    source = folder_pack(tmp_path)  # its library is none, so its test fails
    with node(tmp_path / "den", "den") as den:
        async with den.client() as client:
            assert (await client.get("/engines"))["packs"] == []
            added = await client.post("/engines", {"path": str(source)})
            (pack,) = added["packs"]
            assert (pack["name"], pack["current"]) == (name_of(), False)
            assert pack["problem"]
            with pytest.raises(Refused):
                await client.post("/engines/vulkan/use")
            with pytest.raises(Refused):
                await client.post("/engines/rollback", {"backend": "vulkan"})
            assert (await client.post("/engines/test", {"backend": "vulkan"}))["changed"] == [name_of()]
            (source / LIBRARY).write_bytes(b"broken")
            with pytest.raises(Damaged):
                await client.post("/engines", {"path": str(source)})
            with pytest.raises(BadInput):
                await client.post("/engines", {"path": ""})
            assert (await client.delete(f"/engines/{name_of()}"))["packs"] == []


async def test_a_pack_is_exported_and_installed_from_the_file(
    service: EnginePackService, outcome: FakeTest, tmp_path: Path
) -> None:
    await service.add(str(folder_pack(tmp_path)))
    place = tmp_path / "stick" / "vulkan.tar.gz"
    with pytest.raises(Refused, match="pack_not_exported"):  # no such folder
        await service.export("vulkan", place)
    place.parent.mkdir()
    assert (await service.export("vulkan", place)).changed == [name_of()]
    assert [path.name for path in place.parent.iterdir()] == ["vulkan.tar.gz"]
    other = EnginePackService(PackStore(tmp_path / "other", engine_version=ENGINE))
    (pack,) = (await other.add(str(place))).packs
    assert (pack.name, pack.current) == (name_of(), True)
    assert pack.sha256 == (await service.packs()).packs[0].sha256
    again = tmp_path / "again.tar.gz"
    await other.export("vulkan", again)
    assert again.read_bytes() == place.read_bytes()
    service.libraries["vulkan"].write_bytes(FILES[LIBRARY].swapcase())
    with pytest.raises(Damaged, match="pack_wrong_hash"):
        await service.export("vulkan", tmp_path / "damaged.tar.gz")
    assert not (tmp_path / "damaged.tar.gz").exists()


async def test_exports_are_written_one_after_the_other_and_hold_nothing_else(
    service: EnginePackService, outcome: FakeTest, tmp_path: Path
) -> None:
    await service.add(str(folder_pack(tmp_path)))
    (tmp_path / "engines" / name_of() / "Thumbs.db").write_bytes(b"of the system")
    place = tmp_path / "stick.tar.gz"
    unfinished = tmp_path / "stick.tar.gz.part"
    unfinished.write_bytes(b"of a browser")
    await asyncio.gather(*(service.export("vulkan", place) for _ in range(4)))
    assert unfinished.read_bytes() == b"of a browser"
    left = sorted(path.name for path in tmp_path.glob("stick*"))  # noqa: ASYNC240
    assert left == ["stick.tar.gz", "stick.tar.gz.part"]
    other = EnginePackService(PackStore(tmp_path / "other", engine_version=ENGINE))
    assert (await other.add(str(place))).packs[0].current


async def test_an_export_ends_with_its_caller_and_leaves_nothing(
    service: EnginePackService, outcome: FakeTest, tmp_path: Path
) -> None:
    await service.add(str(folder_pack(tmp_path, {LIBRARY: os.urandom(64 << 20)})))
    place = tmp_path / "stick" / "vulkan.tar.gz"
    place.parent.mkdir()
    async with asyncio.TaskGroup() as group:
        export = group.create_task(service.export("vulkan", place), name="export")
        async with asyncio.timeout(END_SECONDS * BUSY):
            while not any(path.stat().st_size > 0 for path in place.parent.iterdir()):  # noqa: ASYNC110  a thread's work
                await asyncio.sleep(0.01)
        export.cancel()
    assert list(place.parent.iterdir()) == []


def ordered(offer: dict[str, Any]) -> dict[str, Any]:
    """Return what is ordered once a person has agreed to an offer."""
    return {name: offer[name] for name in ("machine", "sha256", "pack", "built", "size_bytes")}


@pytest.mark.skipif(sys.platform == "win32", reason="ends a node by SIGTERM")
def test_a_node_that_ends_in_mid_copy_ends_at_once_and_keeps_what_is_here(tmp_path: Path) -> None:
    with paired(tmp_path, "den", "attic") as (den, attic):
        den.control("POST", "/engines", {"path": str(folder_pack(tmp_path, {LIBRARY: bytes(16 << 20)}))})
        den.control("POST", "/settings", {"share_models": True})
        den.control("POST", "/lending", {"link_mbit": 8})
        (offer,) = attic.control("GET", "/engines/offers")["offers"]
        attic.control("POST", "/engines/copy", ordered(offer))
        late = time.monotonic() + END_SECONDS * BUSY
        while attic.control("GET", "/engines")["copy"]["done_bytes"] == 0:
            assert time.monotonic() < late
            time.sleep(0.05)
        began = time.monotonic()
        attic.process.send_signal(signal.SIGTERM)
        assert attic.process.wait(END_SECONDS * BUSY) == 0  # in order, not by the last resort
        assert time.monotonic() - began < start.END_SECONDS
        (part,) = (attic.root / "engines").glob(f"{COPYING}*/*.part")
        assert part.stat().st_size > 0


def test_a_pack_goes_from_one_node_to_the_other_by_file_and_by_copy(tmp_path: Path) -> None:
    """Its library is none, so the test of the pack fails on both; everything else is real."""
    with paired(tmp_path, "den", "attic") as (den, attic):
        den.control("POST", "/engines", {"path": str(folder_pack(tmp_path))})
        assert attic.control("GET", "/engines/offers") == {"offers": []}  # den's owner has not allowed it
        den.control("POST", "/settings", {"share_models": True})
        (offer,) = attic.control("GET", "/engines/offers")["offers"]
        assert (offer["name"], offer["installed"]) == ("den", False)
        order = ordered(offer)
        now = attic.control("POST", "/engines/copy", order)["copy"]
        late = time.monotonic() + END_SECONDS * BUSY
        while now["state"] in ("copying", "testing"):
            assert time.monotonic() < late, now
            time.sleep(0.05)
            now = attic.control("GET", "/engines")["copy"]
        assert (now["state"], now["problem_facts"]["code"]) == ("failed", "pack_not_loaded")
        (pack,) = attic.control("GET", "/engines")["packs"]
        assert (pack["name"], pack["copied_from"], pack["sha256"]) == (name_of(), "den", offer["sha256"])
        place = {"path": str(tmp_path / "stick.tar.gz")}
        assert attic.control("POST", "/engines/vulkan/export", place)["changed"] == [name_of()]
        with pytest.raises(Refused, match="pack_file_exists"):
            attic.control("POST", "/engines/vulkan/export", place)
        attic.control("DELETE", "/engines/vulkan")
        assert attic.control("POST", "/engines", place)["packs"][0]["copied_from"] == ""
        assert attic.control("POST", "/engines/copy/cancel")["copy"]["state"] == "failed"  # nothing to cancel
