"""Tests of the doctor's findings about one other machine."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from app.core.errors import Reason
from app.core.household.household import Machine
from app.core.ids import MachineId
from app.node.doctor import _lending, _reached
from tests.findings import cause_of, cure_of

if TYPE_CHECKING:
    from app.node.lending.lending_policy import LendingPolicy

ATTIC = Machine(MachineId("a" * 64), "attic-pc", address="10.0.0.2:4242")


def test_a_cause_with_a_cure_of_its_own_is_told_once() -> None:
    reason = Reason("peer_unreachable", {"name": "attic-pc", "address": "10.0.0.2:4242"})
    refused = _reached(ATTIC, reason)
    assert "attic-pc" in cause_of(refused)
    assert cure_of(refused) == ""
    assert not refused.ok


def test_what_a_machine_said_as_it_closed_comes_before_a_call_that_failed() -> None:
    closed = replace(ATTIC, reason=Reason("shutting_down"))
    check = _reached(closed, Reason("peer_unreachable", {"name": "attic-pc", "address": "x"}))
    assert cause_of(check).startswith("Poolhouse was closed on that machine")
    assert check.code == "peer_unreachable"  # else the window offers no other address


def test_a_machine_of_which_nothing_is_known_gets_the_general_cure() -> None:
    check = _reached(ATTIC, None)
    assert cure_of(check).startswith("Start Poolhouse there")


@pytest.mark.parametrize(("why", "cured"), [("lend_no_role", False), ("lend_off", True), (None, True)])
def test_a_guest_is_not_advised_to_lend(why: str | None, cured: bool) -> None:
    policy = SimpleNamespace(lent_bytes=lambda: 0, reason=lambda: Reason(why) if why else None)
    check = _lending(cast("LendingPolicy", policy))
    assert ("`poolhouse lend --memory 2GiB`" in cure_of(check)) is cured
    assert check.ok is None
