"""Whom a person means to pair with, before anybody is asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.core.errors import AppError
from app.core.household.household import Machine
from app.core.ids import MachineId
from app.network.network import Network
from app.node.control import pairing_actions

DEN, ATTIC = MachineId("d" * 64), MachineId("a" * 64)
MACHINES = {DEN: Machine(DEN, "den-pc"), ATTIC: Machine(ATTIC, "attic-pc")}


@pytest.mark.parametrize(
    ("typed", "code", "name"),
    [
        ("Attic-PC", "pairing_member", "attic-pc"),
        (" ａttic-ｐc", "pairing_member", "attic-pc"),
        ("aaaaaaaa", "pairing_member", "attic-pc"),
        ("den-pc", "peer_is_this", "den-pc"),
        ("loft", "address_wrong", None),
    ],
)
async def test_a_machine_of_the_household_is_not_paired_again(typed: str, code: str, name: str | None) -> None:
    network: Any = cast("Network", SimpleNamespace(id=DEN))
    with pytest.raises(AppError) as refused:
        await pairing_actions.join(network, typed, "123456", [], MACHINES)
    assert refused.value.reason.code == code
    assert refused.value.reason.facts.get("name") == name
