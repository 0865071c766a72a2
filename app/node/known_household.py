"""The household as this machine currently knows it: its machines, their last-seen times, and this machine's rights."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from app.core.household import membership
from app.core.household.household import Connected, Disconnected, Event, Household, Machine, Member, Removed, apply
from app.core.household.operations import Role
from app.core.ids import MachineId
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically
from app.network.network import Network
from app.node.control import pairing_actions

log = logging.getLogger(__name__)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seen: dict[MachineId, float] = {}  # Unix time


class LastSeen:
    """The times when members were last seen. The time is saved when a connection opens as well as when it ends, because
    a node that is killed cannot save the end.
    """

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        self._file, self._now = file, now
        self._seen = dict(read_json_or_default(file, _File, "the last-seen times").seen)
        self._turn = threading.Lock()  # keeps writes in the order of the changes

    def record(self, event: Event) -> Event:
        """Record the time of a link event. Return the event; a `Member` event gets the last-seen time added."""
        match event:
            case Member(id):
                return replace(event, seen_at=self._seen.get(id))
            case Connected(id, address) if address is not None:
                self._keep(id, self._now())
            case Disconnected(id) if id in self._seen:  # otherwise it was removed, which closed the link
                self._keep(id, event.at or self._now())
            case Removed(id) if self._seen.pop(id, None) is not None:
                self._save_soon()
            case _:
                pass
        return event

    def _keep(self, machine: MachineId, at: float) -> None:
        self._seen[machine] = at
        self._save_soon()

    def _save_soon(self) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._save)

    def _save(self) -> None:
        with self._turn:
            try:
                write_atomically(self._file, msgspec.json.encode(_File(dict(self._seen))))
            except OSError as error:
                log.warning("the last-seen times could not be saved: %s", error)


class Rights:
    """The rights of this machine, read on each call from the membership log and the owner's settings."""

    def __init__(self, network: Network) -> None:
        self._network = network
        # the owner's choices: whether other members are answered, and whether other hosts are asked
        self.answers_household: Callable[[], bool] = lambda: True
        self.asks_household: Callable[[], bool] = lambda: True

    def may_lend(self) -> bool:
        """Return whether this machine may lend. Without a household, there is no member to lend to anyway."""
        me = self._member()
        return me is None or Role.LENDER in me.roles

    def is_guest(self) -> bool:
        """Return whether this machine is a guest. Hosts answer a guest's requests, and its own models use only its own
        memory."""
        me = self._member()
        return me is not None and me.is_guest

    def name(self) -> str:
        """Return this machine's name in the household, or "" without a household."""
        me = self._member()
        return me.name if me is not None else ""

    def may_answer_for(self, machine: MachineId) -> bool:
        """Return whether this machine is a host that answers requests of the household, and `machine` may send
        them.
        """
        other = self._network.members.get(machine)
        return other is not None and other.may_ask and self.may_be_asked()

    def may_be_asked(self) -> bool:
        """Return whether this machine is a host whose owner lets other members use its models."""
        me = self._member()
        return me is not None and Role.HOST in me.roles and self.answers_household()

    def may_ask(self) -> bool:
        """Return whether this machine may send requests to the hosts of its household, and its owner allows this."""
        me = self._member()
        return me is not None and me.may_ask and self.asks_household()

    def _member(self) -> membership.Member | None:
        return self._network.members.get(self._network.id)


class KnownHousehold:
    """The current state of the household, updated by events. `changed` is called after each event."""

    def __init__(self, network: Network, last_seen: LastSeen, changed: Callable[[], None]) -> None:
        self.me, self.rights = network.id, Rights(network)
        self._last_seen, self._changed = last_seen, changed
        self.now = Household()

    def apply(self, event: Event) -> None:
        self.now = apply(self.now, self._last_seen.record(event))
        self._changed()

    def machine(self, ref: str) -> Machine:
        """Return the machine with this name or ID prefix. Raises BadInput if none or several match."""
        return pairing_actions.find_machine(ref, self.now.machines)

    def name(self, machine: MachineId) -> str:
        """Return the name of a machine, or the start of its ID if the name is unknown."""
        return self.now.machines.get(machine, Machine(machine, machine[:8])).name
