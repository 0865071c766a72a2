"""The division of a stage among graphics cards and the processor."""

from __future__ import annotations

from random import Random

import pytest

from app.core.planner.card_division import CardDivision, StageParts, divide

PLAIN = StageParts((10,) * 6, (0,) * 6, head_bytes=5, work_bytes=2)
MOE = StageParts((10,) * 6, (8,) * 6, head_bytes=5, work_bytes=2)


def test_a_stage_that_fits_one_card_uses_only_that() -> None:
    assert divide(PLAIN, (67, 100)) == CardDivision((6, 0), (67, 0))
    assert divide(PLAIN, (66, 100)) == CardDivision((5, 1), (52, 17))


def test_each_card_is_filled_before_the_next_one() -> None:
    assert divide(PLAIN, (25, 30, 40)) == CardDivision((2, 2, 2), (22, 22, 27))


def test_a_card_too_small_for_a_layer_is_left_out() -> None:
    assert divide(PLAIN, (11, 67)) == CardDivision((0, 6), (0, 67))


def test_the_first_layers_stay_with_the_processor() -> None:
    assert divide(PLAIN, (47,)) == CardDivision((4,), (47,), processor_layers=2)
    assert divide(PLAIN, (16,)) is None
    assert divide(PLAIN, ()) is None
    assert divide(PLAIN, (47,), overflow=False) is None


def test_experts_go_to_main_memory_before_layers_do() -> None:
    assert divide(MOE, (50,)) == CardDivision((6,), (43,), processor_experts=3)
    assert divide(MOE, (17,)) == CardDivision((5,), (17,), processor_layers=1, processor_experts=6)


@pytest.mark.parametrize("seed", range(300))
def test_no_card_holds_more_than_its_room_and_every_layer_has_a_place(seed: int) -> None:
    chance = Random(seed)
    n_layers = chance.randint(1, 12)
    layers = tuple(chance.randint(5, 20) for _ in range(n_layers))
    experts = tuple(chance.choice([0, size // 2, size - 1]) for size in layers)
    parts = StageParts(layers, experts, chance.randint(0, 9), chance.randint(0, 4))
    rooms = tuple(chance.randint(0, 90) for _ in range(chance.randint(1, 3)))
    made = divide(parts, rooms)
    if made is None:
        least = parts.work_bytes + parts.head_bytes + layers[-1] - experts[-1]
        assert all(room < least for room in rooms) or n_layers == 1
        return
    assert sum(made.counts) + made.processor_layers == n_layers
    assert all(used <= room for used, room in zip(made.card_bytes, rooms, strict=True))
    sizes = [size - (experts[n] if n < made.processor_experts else 0) for n, size in enumerate(layers)]
    on_cards, cards = sum(sizes[made.processor_layers :]) + parts.head_bytes, sum(n > 0 for n in made.counts)
    assert sum(made.card_bytes) == on_cards + cards * parts.work_bytes
