"""Tests of a computer's graphics cards as Linux's files list them; none of them is used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.core.errors import Reason
from app.machine.hardware import graphics
from app.machine.hardware.engines import Device, Engine

CPU = Device("CPU", "A CPU", "cpu", "CPU")
GPU = Device("CUDA0", "NVIDIA RTX 3060", "gpu", "CUDA", 8 << 30, 12 << 30)
IN_PROCESSOR = Device("Vulkan0", "Radeon 680M", "igpu", "Vulkan")
IDS = """# a comment
10dd  Another
\t2503  Not this one
10de  NVIDIA Corporation
\t2503  GA106 [GeForce RTX 3060]
\t\t1043 8810  A board of it
\t2504  GA107
1a03  ASPEED
"""


def device(bus: Path, address: str, **result: str) -> None:
    folder = bus / address
    folder.mkdir(parents=True)
    for name, text in result.items():
        (folder / name.replace("kind", "class")).write_text(f"{text}\n")


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ids = tmp_path / "pci.ids"
    ids.write_text(IDS)
    monkeypatch.setattr(graphics, "NAMES", (tmp_path / "none", ids))
    monkeypatch.setattr(graphics, "NVIDIA_CARDS", tmp_path / "nvidia")
    return tmp_path / "bus"


def test_a_card_has_the_name_it_is_sold_under_also_without_its_driver(bus: Path) -> None:
    device(bus, "0000:01:00.0", vendor="0x10de", device="0x2503", kind="0x030000")
    device(bus, "0000:02:00.0", vendor="0x10de", device="0x2504", kind="0x030200")
    device(bus, "0000:03:00.0", vendor="0x10de", device="0x9999", kind="0x030200")
    device(bus, "0000:01:00.1", vendor="0x10de", device="0x2503", kind="0x040300")  # its sound
    assert graphics.cards_on_bus(bus) == ["NVIDIA GeForce RTX 3060", "NVIDIA GA107", "NVIDIA"]
    path = graphics.NVIDIA_CARDS / "0000:03:00.0" / "information"
    path.parent.mkdir(parents=True)
    path.write_text("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 5\n")
    assert graphics.cards_on_bus(bus)[-1] == "NVIDIA H100 80GB HBM3"


def test_what_belongs_to_a_processor_or_a_server_is_no_card(bus: Path) -> None:
    device(bus, "0000:00:02.0", vendor="0x8086", device="0x9a49", kind="0x030000")
    device(bus, "0000:05:00.0", vendor="0x1002", kind="0x030000", mem_info_vram_total=str(512 << 20))
    device(bus, "0000:06:00.0", vendor="0x1a03", device="0x2000", kind="0x030000")
    device(bus, "0000:07:00.0")
    assert graphics.cards_on_bus(bus) == []
    device(bus, "0000:03:00.0", vendor="0x8086", device="0x56a0", kind="0x030000")
    device(bus, "0000:08:00.0", vendor="0x1002", kind="0x030000", mem_info_vram_total=str(8 << 30))
    assert graphics.cards_on_bus(bus) == ["Intel", "AMD"]


def test_a_system_that_tells_nothing_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(graphics, "PCI", tmp_path / "none")
    assert graphics.list_cards() == []


@pytest.mark.parametrize(
    ("expected", "listed", "cards"),
    [
        ([Engine("llamacpp", devices=[CPU])], [], None),
        ([Engine("llamacpp", devices=[CPU, IN_PROCESSOR])], [], None),
        ([Engine("llamacpp", devices=[CPU])], ["NVIDIA", "AMD"], "AMD, NVIDIA"),
        ([Engine("llamacpp", missing=Reason("engine_words", {"words": "no libgomp"}))], ["NVIDIA"], "NVIDIA"),
        ([Engine("llamacpp", devices=[CPU, GPU])], ["NVIDIA GA106"], "NVIDIA RTX 3060"),
    ],
)
def test_every_card_is_one_that_is_not_used(expected: list[Engine], listed: list[str], cards: str | None) -> None:
    why = graphics.unused_cards(expected, listed)
    assert (why and why.facts["cards"]) == cards


LINUX_DRIVER = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (root@host)\nGCC version:  gcc"
)


@pytest.mark.parametrize(
    ("card", "driver", "pack"),
    [
        ("NVIDIA GeForce RTX 3060", LINUX_DRIVER.format("580.65.06"), "CUDA 13"),
        ("NVIDIA GeForce RTX 3060", LINUX_DRIVER.format("535.183.01"), "CUDA 12"),
        ("NVIDIA GeForce GTX 1080", LINUX_DRIVER.format("470.256.02"), "Vulkan"),
        ("NVIDIA", "", "Vulkan"),  # Debian's own driver
        ("AMD Radeon RX 7800 XT", LINUX_DRIVER.format("580.65.06"), "Vulkan"),
        ("Intel Arc A770", "", "Vulkan"),
        ("Apple GPU", "", "Metal"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the driver's version is in the registry there")
def test_a_card_needs_the_pack_that_its_driver_can_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, card: str, driver: str, pack: str
) -> None:
    monkeypatch.setattr(graphics, "NVIDIA_DRIVER", tmp_path / "version")
    if driver:
        (tmp_path / "version").write_text(driver)
    assert graphics.pack_for(card) == pack


@pytest.mark.parametrize(
    ("version", "major"), [("32.0.15.8065", 580), ("31.0.15.3699", 536), ("30.0.14.7212", 472), ("1.2", 0), ("", 0)]
)
def test_windows_hides_the_drivers_own_version_in_another(version: str, major: int) -> None:
    assert graphics.windows_driver_version(version) == major
