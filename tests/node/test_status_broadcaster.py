"""Tests of what lenders are told about answers that pass through their layers. Links without a network."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from app.core.ids import MachineId
from app.network.messages import Answering, Message, Status
from app.network.network import Network
from app.node.status_broadcaster import StatusBroadcaster
from tests.node.lending.test_lending_policy import until

ATTIC, STUDIO = (MachineId(digit * 64) for digit in "ab")
STATUS = Status(name="den", device="", total_bytes=1, lendable_bytes=1, used_bytes=0, state="ready")


class Link:
    def __init__(self, peer: MachineId) -> None:
        self.peer = peer


@dataclass
class Links:
    """A stand-in for app/network/network.py, as far as it is used here."""

    links: dict[MachineId, Link]
    said: list[tuple[MachineId, bool]] = field(default_factory=list)

    async def broadcast(self, message: Message, machines: Any = None) -> None:
        if isinstance(message, Answering):
            self.said += [(machine, message.now) for machine in machines]


async def test_who_holds_layers_of_what_is_asked_is_told_so_once_and_on_every_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.node.status_broadcaster.STATUS_SECONDS", 0.01)
    network = Links({machine: Link(machine) for machine in (ATTIC, STUDIO)})
    machines: set[MachineId] = set()
    telling = StatusBroadcaster(lambda: STATUS, dict, cast("Network", network), lambda: frozenset(machines))

    async def after_news(n: int) -> list[tuple[MachineId, bool]]:
        telling.changed()
        await until(lambda: len(network.said) >= n)
        return network.said

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(telling.run(), name="tell")
        machines.add(ATTIC)
        assert await after_news(1) == [(ATTIC, True)]
        network.links[ATTIC] = Link(ATTIC)  # a new one: the lender has forgotten
        assert await after_news(2) == [(ATTIC, True)] * 2
        machines.clear()
        machines.add(STUDIO)  # placed anew under its answer
        assert sorted((await after_news(4))[2:]) == [(ATTIC, False), (STUDIO, True)]
        machines.clear()
        assert (await after_news(5))[4:] == [(STUDIO, False)]
        running.cancel()
