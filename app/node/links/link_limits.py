"""How fast the link to each machine may be by what its two owners chose; other limits are measured."""

from __future__ import annotations

from collections.abc import Callable

from app.core.household.household import Household
from app.core.ids import MachineId
from app.network.rate_limits import BYTES_OF_MBIT, LinkPace
from app.node.downloads.downloads import Downloads
from app.node.lending.lending_policy import LendingPolicy


class LinkLimits:
    """Ours is in force here; theirs is what they tell."""

    def __init__(self, ours: LinkPace, household: Callable[[], Household]) -> None:
        self._ours, self._household = ours, household

    def bind(self, rules: LendingPolicy, downloads: Downloads) -> None:
        """What the owner chooses is in force from now on, for downloads too."""
        rules.limit_links, downloads.arrived = self._ours.limit, self._ours.arrived

    def of(self, machine: MachineId) -> float | None:
        """The smaller of both limits, in bytes a second; None: neither owner chose one."""
        there = self._household().machines.get(machine)
        theirs = there.about.link_mbit * BYTES_OF_MBIT if there else 0
        return min((float(one) for one in (self._ours.bytes_per_s, theirs) if one), default=None)
