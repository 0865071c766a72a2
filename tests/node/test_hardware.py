"""The line about this machine: its processor at once, and what its engines found as soon as they told."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.errors import BadInput, Reason, StageLost
from app.core.household.household import IdleCard
from app.core.planner.speed_estimates import SpeedConditions
from app.machine.hardware import devices, engines, graphics
from app.machine.hardware.cards import Card, ProcessorOnly, UnusedCard
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


FALCON, LLAMA = "falcon-h1 Q4_K_M", "llama Q4_K_M"
LACKS = Reason("device_tensor", {"tensor": "blk.0.ssm_a"})


class OneCard(ProcessorOnly):
    """A card that is told what it does not compute."""

    def __init__(self, folder: Path) -> None:
        self.card_ = Card(
            "Vulkan0", "A card", "Vulkan", folder / "pack" / "lib.so", folder, "", False, 1 << 34, 1 << 33
        )
        self.verdicts: dict[str, Reason | None] = {}

    @property
    def card(self) -> Card | None:
        return self.card_

    def card_for(self, family: str) -> Card | None:
        return None if self.verdicts.get(family) else self.card_

    def judge(self, card: Card, family: str, why: Reason | None, *, with_head: bool = False) -> None:
        self.verdicts[family] = why

    def crashed(self, card: Card, family: str) -> None:
        self.verdicts[family] = Reason("device_crashed")


async def test_a_speed_is_measured_on_what_computes_the_family(answers: Any, tmp_path: Path) -> None:
    hardware = Hardware(Threads(4), lambda: None, OneCard(tmp_path))
    answers.append([FOUND])
    unfit = BadInput("device_unfit", worker="den", cause=LACKS)
    falcon: Any = SimpleNamespace(architecture="falcon-h1")
    stand_in: Any = SimpleNamespace(architecture="llama")
    assert (await hardware.setup(SpeedConditions(64, family=FALCON))).device == "A card Vulkan pack"
    assert not hardware.is_refusal(
        falcon, SpeedConditions(8, family=FALCON), BadInput("device_unusable", worker="den", cause=LACKS)
    )
    assert not hardware.is_refusal(
        stand_in, SpeedConditions(8, family=FALCON), unfit
    )  # whose layers are not the family's
    assert hardware.is_refusal(falcon, SpeedConditions(8, family=FALCON), unfit)
    assert (await hardware.setup(SpeedConditions(64, family=FALCON))).device == "Chip 9"
    assert (await hardware.setup(SpeedConditions(64, family=LLAMA))).device == "A card Vulkan pack"
    assert not hardware.is_refusal(falcon, SpeedConditions(8, family=FALCON), unfit)  # the processor is not tried twice
    crash = StageLost("worker_crashed", worker="den", how=Reason("end_signal", {"signal": "SIGSEGV"}), words="")
    llama: Any = SimpleNamespace(architecture="llama")
    assert not hardware.is_refusal(
        llama, SpeedConditions(8, family=LLAMA), StageLost("worker_memory_short", worker="den")
    )
    assert hardware.is_refusal(llama, SpeedConditions(8, family=LLAMA), crash)
    assert (await hardware.setup(SpeedConditions(64, family=LLAMA))).device == "Chip 9"
