"""Tests of which cards count, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.errors import AppError, BadInput, DoesNotFit, Reason, StageLost
from app.machine.hardware.cards import Card, is_card_failure, is_card_short, ranked
from app.machine.hardware.engines import Device

CUDA, VULKAN, ROCM, CACHE = Path("cuda"), Path("vulkan"), Path("rocm"), Path("cache")
RTX = Device("CUDA0", "NVIDIA GeForce RTX 3060", "gpu", "CUDA", 11 << 30, 12 << 30, "0000:01:00.0")
RTX_VULKAN = Device("Vulkan0", "NVIDIA GeForce RTX 3060", "gpu", "Vulkan", 12 << 30, 12 << 30, "")
RADEON = Device("Vulkan1", "AMD Radeon RX 7900 XTX (RADV NAVI31)", "gpu", "Vulkan", 24 << 30, 24 << 30, "0000:03:00.0")
RADEON_ROCM = Device("ROCm0", "AMD Radeon RX 7900 XTX", "gpu", "ROCm", 24 << 30, 24 << 30, "0000:03:00.0")
INSIDE = Device("Vulkan2", "AMD Radeon 680M", "igpu", "Vulkan", 16 << 30, 16 << 30)
CPU = Device("CPU", "A CPU", "cpu", "CPU")
BLAS = Device("BLAS", "BLAS", "accelerator", "BLAS")


def names(devices: list[tuple[Path, Device]]) -> list[str]:
    return [card.name for card in ranked(devices, CACHE)]


def test_a_card_seen_by_two_back_ends_counts_once() -> None:
    assert names([(VULKAN, RTX_VULKAN), (CUDA, RTX)]) == ["CUDA0"]
    assert names([(ROCM, RADEON_ROCM), (VULKAN, RADEON)]) == ["Vulkan1"]


def test_two_equal_cards_of_one_back_end_are_two() -> None:
    other = Device("CUDA1", RTX.description, "gpu", "CUDA", 11 << 30, 12 << 30, "0000:02:00.0")
    assert names([(CUDA, RTX), (CUDA, other)]) == ["CUDA0", "CUDA1"]


def test_cards_with_memory_of_their_own_come_first_and_the_largest_before_the_others() -> None:
    assert names([(VULKAN, INSIDE), (CUDA, RTX), (VULKAN, RADEON)]) == ["Vulkan1", "CUDA0", "Vulkan2"]


def test_processors_and_their_helpers_are_no_cards() -> None:
    assert names([(VULKAN, CPU), (VULKAN, BLAS)]) == []


@pytest.mark.parametrize(("device", "key"), [(RTX, "0000:01:00.0"), (RTX_VULKAN, "NVIDIA GeForce RTX 3060")])
def test_a_card_keeps_its_key(device: Device, key: str) -> None:
    (card,) = ranked([(CUDA, device)], CACHE)
    assert isinstance(card, Card)
    assert card.key == key


@pytest.mark.parametrize(
    ("error", "is_failure"),
    [
        (StageLost("worker_hung", worker="a", seconds=1), True),
        (BadInput("device_unusable", worker="a", cause="b"), True),
        (BadInput("model_not_loaded", worker="a", cause="b"), False),
        (DoesNotFit("memory_short", worker="a", cause="b"), False),
        (StageLost("worker_memory_short", worker="a", how="", words=""), False),
    ],
)
def test_only_failures_of_the_card_itself_count(error: AppError, is_failure: bool) -> None:
    assert is_card_failure(error) is is_failure


@pytest.mark.parametrize(
    ("error", "is_short"),
    [
        (DoesNotFit("memory_short", worker="a", cause="b", text="unable to allocate Vulkan0 buffer"), True),
        (DoesNotFit("memory_short", worker="a", cause="b", text="failed to allocate CPU buffer of size 1"), False),
        (DoesNotFit("memory_short", worker="a", cause=Reason("layers_no_memory"), text="not enough memory"), False),
        (StageLost("worker_card_short", worker="a", how="", words="CUDA error: out of memory"), True),
        (StageLost("worker_memory_short", worker="a", how="", words="what():  std::bad_alloc"), False),
        (StageLost("worker_crashed", worker="a", how="", words="ErrorDeviceLost"), False),
    ],
)
def test_a_card_is_short_only_if_main_memory_was_not(error: AppError, is_short: bool) -> None:
    assert is_card_short(error) is is_short
