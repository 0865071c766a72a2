"""A forecast is a range whose width follows from what it is based on."""

from __future__ import annotations

import pytest

from app.core.planner.forecast_range import rounded_range, spread_of
from app.gui.look import formats


def test_the_less_certain_the_basis_the_wider_the_range() -> None:
    measured = spread_of(9.3, estimated=False)
    assert 1 < measured < spread_of(330.0, estimated=False)  # other work of the computers matters more
    assert measured < spread_of(9.3, estimated=True)
    assert measured < spread_of(9.3, estimated=False, other_load=0.3)
    assert spread_of(9.3, estimated=False, other_load=0.1) == measured


@pytest.mark.parametrize(
    ("value", "spread", "shown"),
    [(11.2, 1.25, (9, 14, 0)), (3.4, 1.25, (2.7, 4.2, 1)), (330, 1.5, (220, 500, 0)), (0.0, 1.25, (0, 0, 1))],
)
def test_the_ends_are_rounded_to_two_digits(value: float, spread: float, shown: tuple[float, float, int]) -> None:
    assert rounded_range(value, spread) == shown


def test_the_window_says_the_range_with_its_unit() -> None:
    assert formats.speed_range(11.2, 1.25) == "9–14 tok/s"
    assert formats.speed_range(11.2, 1.0) == "11 tok/s"
    assert formats.seconds_range(0.05, 1.25) == "40–62 ms"
    assert formats.seconds_range(2.9, 1.25) == "2.3–3.6 s"
    assert formats.seconds_range(100, 1.25) == "1.3–2.1 min"
