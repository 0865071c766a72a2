"""What two owners chose for the network makes one limit of the link between their machines."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from app.core.household.household import About, Household, Machine
from app.core.ids import MachineId
from app.network.rate_limits import LinkPace
from app.node.links.link_limits import LinkLimits

FAR, STRANGER = MachineId("ab" * 32), MachineId("cd" * 32)


def test_what_the_owner_chooses_binds_links_and_downloads() -> None:
    pace, rules, downloads = LinkPace(), SimpleNamespace(), SimpleNamespace()
    limits = LinkLimits(pace, Household)
    limits.bind(rules, downloads)  # type: ignore[arg-type]
    rules.limit_links(8)
    assert pace.bytes_per_s == limits.of(FAR) == 1e6
    assert downloads.arrived == pace.arrived


@pytest.mark.parametrize(
    ("ours", "theirs", "limit"), [(0, 0, None), (10, 0, 1.25e6), (0, 8, 1e6), (10, 8, 1e6), (4, 8, 5e5)]
)  # fmt: skip
def test_the_smaller_of_both_counts(ours: int, theirs: int, limit: float | None) -> None:
    pace = LinkPace()
    pace.limit(ours)
    far = Machine(FAR, "attic", about=About(link_mbit=theirs))
    limits = LinkLimits(pace, lambda: Household(machines={FAR: far}))
    assert limits.of(FAR) == limit
    assert limits.of(STRANGER) == (ours * 125_000 or None)
