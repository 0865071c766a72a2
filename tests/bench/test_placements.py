"""Machines of a share of a core each, packed onto the cores there are."""

from __future__ import annotations

import pytest

from bench.parts.placements import HOUSEHOLDS, SLOW, Household, pinned
from bench.quota import NoQuota


@pytest.mark.parametrize("household", [*HOUSEHOLDS, SLOW], ids=lambda item: item.words)
def test_every_household_has_room_on_two_cores(household: Household) -> None:
    shares = household.cores
    cores = pinned(shares, (4, 7))
    for core in (4, 7):
        assert sum(s for s, c in zip(shares, cores, strict=True) if c == core) <= 1.0


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(NoQuota):
        pinned((0.6, 0.6, 0.6), (0, 1))
