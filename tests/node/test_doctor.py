"""What the doctor says of one other machine."""

from __future__ import annotations

from app.core.errors import Reason
from app.core.household import Machine
from app.core.ids import MachineId
from app.node.doctor import _reached

ATTIC = Machine(MachineId("a" * 64), "attic-pc", address="10.0.0.2:4242")


def test_a_cause_with_a_cure_of_its_own_is_told_once() -> None:
    reason = Reason("peer_unreachable", {"name": "attic-pc", "address": "10.0.0.2:4242"})
    refused = _reached(ATTIC, reason)
    assert "attic-pc" in refused.cause
    assert refused.cure == ""
    assert not refused.ok


def test_a_machine_of_which_nothing_is_known_gets_the_general_cure() -> None:
    found = _reached(ATTIC, None)
    assert found.cure.startswith("Start Poolhouse there")
