"""Tests of what a plan says about equal processor instructions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.planner.placement import Candidate, Workload
from app.core.planner.plan import plan
from app.node.planning.planning import exactness
from testbed.households import MIB, link, machine, model, speed

MODEL = model([100 * MIB] * 8)
WORK = Workload(512)


def with_card(candidate: Candidate) -> Candidate:
    return replace(candidate, card_bytes=candidate.lends_bytes)


@pytest.mark.parametrize(
    ("host_mib", "has_card", "codes"),
    [
        (700, False, ["plan_exact"]),
        (700, True, ["plan_exact_cards"]),  # the lender's card computes a part
        (4000, False, []),  # one machine computes everything
        (4000, True, []),  # a card that is not used
    ],
)
def test_no_more_is_promised_than_holds(host_mib: int, has_card: bool, codes: list[str]) -> None:
    host, lender = machine("host", host_mib, speed(0.001)), machine("attic", 900, speed(0.01), link())
    placed = plan(host, [with_card(lender) if has_card else lender], MODEL, WORK)
    assert [reason.code for reason in exactness(placed)] == codes
