"""Tests of the machines that may lend, as plans see them."""

from __future__ import annotations

import pytest

from app.core.household.household import Household, Machine
from app.core.ids import MachineId
from app.node.planning.planner_inputs import connected_lenders

ME, ATTIC = MachineId("a" * 64), MachineId("b" * 64)


@pytest.mark.parametrize(("lends_bytes", "used_bytes", "is_lending"), [(0, 0, False), (0, 7, True), (7, 0, True)])
def test_who_lends_nothing_is_no_lender_unless_it_is_in_use(
    lends_bytes: int, used_bytes: int, is_lending: bool
) -> None:
    attic = Machine(ATTIC, "attic", online=True, roles=("lender",), lends_bytes=lends_bytes, used_bytes=used_bytes)
    (candidate,) = connected_lenders(ME, Household({ME: Machine(ME, "den"), ATTIC: attic}), {})
    assert (candidate.id, candidate.is_lending) == (ATTIC, is_lending)
