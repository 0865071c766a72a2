"""Tests of the memory of graphics cards: which stages get how much of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from app.core.planner.card_division import CardDivision, StageParts
from app.core.planner.stage_memory import WORK_FLOOR_BYTES
from app.core.planner.work_shape import WorkShape
from app.machine.hardware.cards import Card, CardClaim
from app.machine.settings import GraphicsSettings
from app.node.card_memory import SHORT_SECONDS, CardMemory
from app.node.measured_work import SHORT_STEP_BYTES, MeasuredWork
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
    now: float = 0.0
    file: Path = Path("nowhere") / "card-memory.json"

    def __post_init__(self) -> None:
        self.work = MeasuredWork(self.file, lambda: self.now)
        self.memory = CardMemory(lambda: self.cards, lambda: self.settings, self.work, lambda: self.now)

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


def test_a_card_that_ran_out_of_memory_is_given_less_each_time_and_in_the_end_nothing() -> None:
    bench = Bench((BIG,))
    on_processor = [bench.use(*[GIB] * 10).division.processor_layers]
    known_before = []
    for _ in range(3):
        known_before.append(bench.memory.ran_short([KEY]) == [])
        on_processor.append(bench.use(*[GIB] * 10).division.processor_layers)
    assert on_processor == [0, 3, 6, 10]
    assert known_before == [False, True, True], "the owner is told once"
    assert (bench.memory.room_bytes, bench.free_bytes) == (0, 0), "no plan counts on it"
    bench.now += SHORT_SECONDS
    assert bench.use(*[GIB] * 10).division.processor_layers == 0, "other programs may have ended"
    assert bench.memory.ran_short([KEY]) == [BIG], "and again it would be told"


def test_all_stages_count_when_a_card_runs_out_of_memory_and_other_cards_do_not() -> None:
    bench = Bench()
    bench.use(*[GIB] * 4)
    bench.use(*[GIB] * 4, key=b"another")
    assert bench.memory.ran_short([KEY]) == [BIG]
    bench.memory.release(KEY)
    again = bench.use(*[GIB] * 4)
    assert again.division.counts == (1, 3), "together they had 8 GiB, and 5.6 are left"
    assert bench.memory.ran_short([b"unknown"]) == []


def test_a_stage_on_a_card_that_is_switched_off_meanwhile_is_not_tried_there_forever() -> None:
    """Another card computes, but not this stage's family."""
    bench = Bench()
    bench.cards = (SMALL,)
    on_card = []
    for _ in range(4):
        on_card.append(bench.memory.claim(KEY, (BIG,), parts(*[GIB] * 10)).division.counts)
        assert bench.memory.ran_short([KEY]) == [], "the owner no longer cares for this card"
    assert on_card == [(10,), (7,), (4,), (0,)]


def test_what_a_stage_took_replaces_the_estimate_on_each_card_and_a_lack_is_remembered(tmp_path: Path) -> None:
    """The estimate leaves room for 9 layers on the big card and for 2 on the small one."""
    bench = Bench(file=tmp_path / "card-memory.json")
    shape = WorkShape.of("a" * 64, CONFIG)
    stage = StageParts((GIB,) * 13, (0,) * 13, 0, GIB + GIB // 2, shape)

    def claim() -> CardClaim:
        return bench.memory.claim(KEY, bench.cards, stage)

    assert claim().division.counts == (8, 2)
    bench.memory.note_work(KEY, {"Vulkan0": GIB // 8, "Vulkan1": GIB // 16})
    measured = claim()
    assert measured.division.counts == (10, 3)
    assert measured.work_bytes == WORK_FLOOR_BYTES + GIB // 8
    bench.memory.note_work(b"unknown", {"Vulkan0": 0})
    bench.memory.ran_short([KEY])
    bench.now += SHORT_SECONDS
    assert claim().work_bytes == WORK_FLOOR_BYTES + GIB // 8 + SHORT_STEP_BYTES, "learned, when the card is free again"
    bench.work.save()
    assert Bench(file=bench.file).memory.claim(KEY, bench.cards, stage).work_bytes == claim().work_bytes
    other = replace(stage, shape=WorkShape.of("b" * 64, CONFIG))
    assert bench.memory.claim(KEY, bench.cards, other).work_bytes == stage.work_bytes, "of another model"


def test_a_small_card_that_ran_out_of_memory_still_gets_a_part() -> None:
    """Otherwise the working memory that a shortage adds would be more than such a card has left."""
    bench, layer_bytes = Bench(), GIB // 64
    stage = StageParts((layer_bytes,) * 8, (0,) * 8, 0, WORK_FLOOR_BYTES, WorkShape.of("a" * 64, CONFIG))
    assert bench.memory.claim(KEY, (BIG,), stage).division.counts == (8,)
    bench.memory.ran_short([KEY])
    assert bench.memory.claim(KEY, (BIG,), stage).division.counts == (4,)
