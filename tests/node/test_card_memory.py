"""Tests of the memory of graphics cards: which stages get how much of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from app.core.planner.card_division import CardDivision, StageParts
from app.machine.hardware.cards import Card, CardClaim
from app.machine.settings import GraphicsSettings
from app.node.card_memory import CardMemory
from backends.contract import Layers, Role, StageConfig

GIB = 1 << 30
LIBRARY = Path("libggml-vulkan.so")
BIG = Card("Vulkan0", "Big card", "Vulkan", LIBRARY, LIBRARY.parent, "1", False, 16 * GIB, 12 * GIB)
SMALL = Card("Vulkan1", "Small card", "Vulkan", LIBRARY, LIBRARY.parent, "2", False, 4 * GIB, 4 * GIB)
KEY = b"a stage"
CONFIG = StageConfig("llamacpp", "", "", Role.WHOLE, Layers(0, 13), 64, 1, 256, 64, 1)


@dataclass
class Bench:
    """Cards that compute, and what their owner allows."""

    cards: tuple[Card, ...] = (BIG, SMALL)
    settings: GraphicsSettings = field(default_factory=GraphicsSettings)

    def __post_init__(self) -> None:
        self.memory = CardMemory(lambda: self.cards, lambda: self.settings)

    def use(self, *layers: int, key: bytes = KEY) -> CardClaim:
        """Load a stage with layers of these sizes."""
        return self.memory.claim(key, self.cards, parts(*layers))

    @property
    def free_bytes(self) -> int:
        now = self.memory.now()
        assert now is not None
        return now.free_bytes


def parts(*layers: int) -> StageParts:
    return StageParts(layers, (0,) * len(layers), 0, 0)


def room(card: Card) -> int:
    return card.free_bytes - max(GIB // 4, card.total_bytes // 10)


def test_a_stage_is_divided_among_the_cards_and_its_memory_is_used_once() -> None:
    bench, both = Bench(), room(BIG) + room(SMALL)
    assert bench.free_bytes == pytest.approx(both, abs=2)
    small = bench.use(GIB, GIB)
    assert small.division == CardDivision((2, 0), (2 * GIB, 0)), "as few cards as possible"
    assert small.placed(CONFIG).devices == ("Vulkan0",)
    assert small.placed(CONFIG).device_layers == ()
    large = bench.use(*[GIB] * 13)
    assert large.division.counts == (10, 3)
    assert bench.free_bytes == pytest.approx(both - 13 * GIB, abs=2), "the first claim has ended with the second"
    placed = large.placed(CONFIG)
    assert (placed.devices, placed.device_layers) == (("Vulkan0", "Vulkan1"), (10, 3))
    assert not placed.uses_processor
    bench.memory.release(KEY)
    bench.memory.release(KEY)
    assert bench.free_bytes == pytest.approx(both, abs=2)


def test_what_the_cards_have_no_room_for_stays_in_main_memory_unless_the_owner_forbids_it() -> None:
    bench = Bench((SMALL,))
    placed = bench.use(*[GIB] * 6).placed(replace(CONFIG, layers=Layers(0, 6)))
    assert (placed.device, placed.device_layers, placed.uses_processor) == ("Vulkan1", (3,), True)
    nothing = bench.use(9 * GIB)
    assert nothing.placed(CONFIG).device == "", "no card is promised where none computes"
    bench.settings = GraphicsSettings(card_only=True)
    left_to_the_driver = bench.use(*[GIB] * 6).placed(replace(CONFIG, layers=Layers(0, 6)))
    assert not left_to_the_driver.uses_processor
    assert left_to_the_driver.device == "Vulkan1"


def test_a_card_with_less_memory_than_was_known_is_given_less() -> None:
    bench = Bench((BIG,))
    assert bench.use(*[GIB] * 10).division.processor_layers == 0
    assert bench.memory.claim(KEY, [BIG], parts(*[GIB] * 10), short=True).division.processor_layers == 3
