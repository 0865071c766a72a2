"""The line about this machine: its processor at once, and what its engines found as soon as they told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from app.core.errors import Reason
from app.core.household.household import IdleCard
from app.core.planner.speed_estimates import SpeedConditions
from app.machine.hardware import devices, engines, graphics
from app.machine.hardware.cards import UnusedCard
from app.machine.hardware.cores import Threads
from app.machine.hardware.engines import Device, Engine
from app.node.planning.local_speed import MAX_DEVICE_TEXT, Hardware, Setup

FOUND = Engine("llamacpp", "0.3", features=["FMA", "AVX2"], devices=[Device("Card", kind="gpu")])


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[list[Engine]]:
    """Return the engines' reports, one after another."""
    said: list[list[Engine]] = []

    async def probe_all() -> list[Engine]:
        return said.pop(0)

    monkeypatch.setattr(engines, "probe_all", probe_all)
    monkeypatch.setattr(devices, "processor_name", lambda: "Chip 9")
    return said


async def test_engines_are_asked_once_and_the_faces_are_told(answers: Any) -> None:
    news: list[str] = []
    hardware = Hardware(Threads(4), lambda: news.append(hardware.device))
    assert hardware.device == "Chip 9"
    answers.append([FOUND])
    await hardware.run()
    assert news == ["Chip 9 · AVX2 · Card"]
    assert await hardware.setup(SpeedConditions(64)) == Setup("llamacpp 0.3 AVX2 FMA", "Chip 9", 4, 64)


async def test_engines_that_failed_are_asked_again(answers: Any) -> None:
    hardware = Hardware(Threads(1), lambda: None)
    answers.extend([[Engine("llamacpp", missing=Reason("engine_words", {"words": "gone"}))], [FOUND]])
    await hardware.run()
    assert hardware.device == "Chip 9"
    assert await hardware.engines() == [FOUND]


async def test_the_line_is_not_longer_than_others_take_it(answers: Any) -> None:
    hardware = Hardware(Threads(1), lambda: None)
    answers.append([Engine("llamacpp", devices=[Device("x" * 199, kind="gpu")])])
    await hardware.run()
    assert len(hardware.device) == MAX_DEVICE_TEXT


async def test_a_card_without_a_pack_is_told_to_the_household(answers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphics, "list_cards", lambda: ["AMD Radeon RX 7800 XT"])
    answers.append([FOUND])
    hardware = Hardware(Threads(1), lambda: None)
    await hardware.run()
    assert hardware.idle_card == IdleCard("AMD Radeon RX 7800 XT", "Vulkan")
    refused = UnusedCard("Vulkan0", Reason("card_switched_off"))  # it has a pack, and a reason of its own
    hardware = Hardware(Threads(1), lambda: None, SimpleNamespace(card=None, unused=(refused,)))
    answers.append([FOUND])
    await hardware.run()
    assert hardware.idle_card is None
