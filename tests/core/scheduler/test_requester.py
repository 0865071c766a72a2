"""Whom an answer is for."""

from __future__ import annotations

from app.core.household.operations import Role
from app.core.scheduler.requester import Requester, member_requester


def test_a_member_that_does_more_than_ask_is_no_guest() -> None:
    assert member_requester("loft", frozenset({Role.GUEST})) == Requester("guest", "loft")
    assert member_requester("attic", frozenset({Role.GUEST, Role.LENDER})) == Requester("machine", "attic")
