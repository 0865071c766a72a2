"""Tests of what is told before an engine pack is removed."""

from __future__ import annotations

from app.core.errors import Reason
from app.core.reasons import said
from app.machine.engine_packs.removal import removal
from app.machine.engine_packs.store import InstalledPack, Tested
from app.machine.hardware.engines import Device

BIG = Device("Vulkan0", "NVIDIA Big card (driver)", "gpu", "Vulkan", pci="0000:01:00.0")
BIG_CUDA = Device("CUDA0", "Big card", "gpu", "CUDA")  # whose place its back end does not tell
SMALL = Device("Vulkan1", "Small card", "igpu", "Vulkan")
CPU = Device("CPU", "A CPU", "cpu", "CPU")


def pack(backend: str, *devices: Device, current: bool = True, problem: Reason | None = None) -> InstalledPack:
    return InstalledPack(f"{backend}-pack", None, current, tested=Tested(list(devices)), problem=problem)


VULKAN, CUDA = pack("vulkan", BIG, SMALL, CPU), pack("cuda13", BIG_CUDA)


def test_the_last_pack_of_a_card_leaves_it_without_one() -> None:
    assert said(removal(VULKAN, [VULKAN])) == (
        "No pack is left for NVIDIA Big card (driver), Small card. Models will run on the processor the next time "
        "they are loaded."
    )


def test_a_card_that_another_pack_offers_computes_through_that() -> None:
    assert said(removal(CUDA, [CUDA, VULKAN])) == "Big card can be used through Vulkan instead."
    left = removal(VULKAN, [CUDA, VULKAN])
    assert left == Reason("pack_removal_others_compute", {"devices": "Small card"})


def test_a_pack_that_computes_nothing_can_go() -> None:
    unused, broken = pack("vulkan", BIG, current=False), pack("vulkan", BIG, problem=Reason("pack_no_device"))
    for idle in (unused, broken, pack("vulkan"), InstalledPack("vulkan-old", is_current=True)):
        assert removal(idle, [idle, CUDA]) == Reason("pack_removal_unused")
        assert removal(CUDA, [idle, CUDA]).code == "pack_removal_processor"
