"""A real pack from `make engine`: installed, verified, damaged, and tested on the software Vulkan device."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from app.machine.engine_packs.manifest import public_version
from app.machine.engine_packs.store import PackStore, this_engine, this_system
from app.node.engines.engine_packs import EnginePackService

PROJECT = Path(__file__).resolve().parents[3]
BUILT = Path(os.environ.get("POOLHOUSE_PACKS", PROJECT / "build" / "engines"))
ARCHIVE = BUILT / f"vulkan-{public_version(this_engine())}-{this_system()}.tar.gz"
SOFTWARE_DEVICE = "0"  # llama.cpp uses a device that is a processor only if it is named

pytestmark = pytest.mark.skipif(not ARCHIVE.exists(), reason="no pack was built here: make engine BACKEND=vulkan")


@pytest.fixture(autouse=True)
def software_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGML_VK_VISIBLE_DEVICES", SOFTWARE_DEVICE)


def test_it_is_installed_from_its_archive_and_from_its_folder(tmp_path: Path) -> None:
    store = PackStore(tmp_path / "engines")
    packed = store.install(ARCHIVE)
    assert store.install(ARCHIVE.with_name(ARCHIVE.name.removesuffix(".tar.gz"))).name == packed.name
    assert packed.manifest is not None
    assert "bf16 arithmetic" in packed.manifest.lacks
    assert packed.manifest.size_bytes > 20 << 20
    assert store.verify(packed.name) is None
    with store.libraries_of(packed)["vulkan"].open("r+b") as file:
        file.seek(1 << 20)
        file.write(b"\0damaged")
    assert store.find(packed.name).problem is not None


def test_its_self_test_sees_the_software_device(tmp_path: Path) -> None:
    service = EnginePackService(PackStore(tmp_path / "engines"))
    (pack,) = asyncio.run(service.add(str(ARCHIVE))).packs
    if not pack.current:
        pytest.skip(f"no Vulkan driver here: {pack.problem}")
    assert [device.api for device in pack.devices] == ["Vulkan"]
    assert pack.devices[0].total_bytes > 0
    assert list(service.libraries) == ["vulkan"]
