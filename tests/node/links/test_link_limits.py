"""Tests that two owners' choices for the network make one limit of the link between their machines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.core.household.household import Household, Machine, SelfDescription
from app.core.ids import MachineId
from app.network.traffic_limits import LinkPace
from app.node.links.link_registry import LinkLimits

FAR, STRANGER = MachineId("ab" * 32), MachineId("cd" * 32)


def test_what_the_owner_chooses_binds_links() -> None:
    pace, household = LinkPace(), cast("Any", SimpleNamespace(now=Household()))
    pace.limit(8)
    assert pace.bytes_per_s == LinkLimits(pace, household).of(FAR) == 1e6


@pytest.mark.parametrize(
    ("ours", "theirs", "limit"), [(0, 0, None), (10, 0, 1.25e6), (0, 8, 1e6), (10, 8, 1e6), (4, 8, 5e5)]
)  # fmt: skip
def test_the_smaller_of_both_counts(ours: int, theirs: int, limit: float | None) -> None:
    pace = LinkPace()
    pace.limit(ours)
    far = Machine(FAR, "attic", about=SelfDescription(link_mbit=theirs))
    household = cast("Any", SimpleNamespace(now=Household(machines={FAR: far})))
    limits = LinkLimits(pace, household)
    assert limits.of(FAR) == limit
    assert limits.of(STRANGER) == (ours * 125_000 or None)
