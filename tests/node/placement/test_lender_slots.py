"""Kept prompts at a lender that answers, that cannot be reached, and that says nothing."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from app.core.errors import Unreachable
from app.core.ids import MachineId
from app.inference.stages.stage_client import Run
from app.network import messages
from app.network.network import Network
from app.node.placement import lender_slots
from app.node.placement.lender_slots import LenderSlotKeeper, SlotRequests
from backends.contract import Role

ATTIC = MachineId("a" * 64)
KEY = bytes(range(32))


class Lender:
    """A lender that reports these positions, or says nothing if there are none."""

    def __init__(self, positions: int | None = None, *, is_away: bool = False) -> None:
        self._positions, self._is_away = positions, is_away
        self.requests = SlotRequests(cast("Network", self))
        self.keeper = LenderSlotKeeper(self.requests, ATTIC, Run(bytes(16), Role.MIDDLE, 64))
        self.n_orders = 0

    def link(self, machine: MachineId) -> Lender:
        if self._is_away:
            raise Unreachable("peer_offline", name="attic")
        return self

    async def send(self, order: messages.KeepSlot | messages.RestoreSlot) -> None:
        self.n_orders += 1
        if self._positions is not None:
            done = messages.SlotDone(request=order.request, pipeline=order.pipeline, positions=self._positions)
            self.requests.receive(ATTIC, done)


def test_a_lender_that_kept_all_is_believed() -> None:
    lender = Lender(700)
    assert asyncio.run(lender.keeper.keep(0, 700, KEY))
    assert not asyncio.run(lender.keeper.keep(0, 701, KEY))
    assert asyncio.run(lender.keeper.restore(0, KEY)) == 700


def test_a_lender_that_is_away_is_asked_again_later() -> None:
    lender = Lender(700, is_away=True)
    assert asyncio.run(lender.keeper.restore(0, KEY)) == 0
    lender._is_away = False
    assert asyncio.run(lender.keeper.restore(0, KEY)) == 700


def test_a_silent_lender_is_waited_for_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lender_slots, "KEEP_SECONDS", 0.05)
    lender = Lender()
    assert not asyncio.run(lender.keeper.keep(0, 700, KEY))
    assert not asyncio.run(lender.keeper.keep(1, 700, KEY))
    assert asyncio.run(lender.keeper.restore(0, KEY)) == 0
    assert lender.n_orders == 1
