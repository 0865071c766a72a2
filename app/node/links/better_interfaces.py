"""Whether another interface of this computer leads to a machine too, where a link uses the wrong one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from app.core.errors import AppError, Busy, Reason
from app.core.household.link import End, Link, better_ends, wrong_interface
from app.core.ids import MachineId
from app.core.reasons import with_reason
from app.machine.interfaces import Interface
from app.network import measured_paths
from app.network.network import Network
from app.network.sockets import Address
from app.node.links.interface_choice import InterfaceChoice, through_of

log = logging.getLogger(__name__)

Json = dict[str, Any]
Tried = tuple[MachineId, str, Address]
TRY_SECONDS = 3.0  # what answers later is no better way; measuring waits behind it
MOST_TRIED = 1_000  # forged announcements may name many addresses


class BetterInterfaces:
    """Tries with some kilobytes; what did not lead there is not tried again until `forget`."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._tried: set[Tried] = set()
        self.found: dict[MachineId, tuple[End, Reason]] = {}  # what to use, and the sentence

    def forget(self) -> None:
        """Other interfaces are there: all may be different."""
        self._tried.clear()
        self.found.clear()

    def keep_only(self, members: Collection[MachineId]) -> None:
        """Nothing is kept of machines that were removed."""
        self._tried = {key for key in self._tried if key[0] in members}
        self.found = {one: what for one, what in self.found.items() if one in members}

    async def look(
        self, machine: MachineId, link: Link, interfaces: Sequence[Interface], ways: Iterable[Address]
    ) -> None:
        """See whether the interface that this link uses is the right one."""
        used = End(link.kind, link.interface, link.negotiated_bits_per_s)
        ends = [End(one.kind, one.name, one.negotiated_bits_per_s) for one in interfaces if one.is_up and one.addresses]
        better = better_ends(used, ends)
        known = self.found.get(machine)
        if known is not None and known[0] not in better:
            del self.found[machine]
        if not better or machine in self.found:
            return
        where = tuple(ways)
        for end in better:
            if await self._leads_there(machine, end, interfaces, where):
                up = self._network.links.get(machine)
                if up is not None:  # it may have ended meanwhile
                    self.found[machine] = end, wrong_interface(up.name, used, end)
                return

    async def _leads_there(
        self, machine: MachineId, end: End, interfaces: Sequence[Interface], ways: Sequence[Address]
    ) -> bool:
        through = through_of(interfaces, end.interface)
        if len(self._tried) > MOST_TRIED:
            self._tried.clear()
        for way in ways:
            key = (machine, end.interface, way)
            if through is None or key in self._tried:
                continue
            try:
                async with asyncio.timeout(TRY_SECONDS):
                    await measured_paths.round_trips(self._network, machine, way, through)
            except Busy:
                return False  # at the next look
            except (AppError, TimeoutError) as error:
                log.debug("%s does not lead to %s: %r", end.interface, way, error)
                self._tried.add(key)
                continue
            return True
        return False


def told(machine: MachineId, preferred: InterfaceChoice, better: BetterInterfaces) -> Json:
    """Which interface was chosen, why it is not used, and which one would be better."""
    why, instead = preferred.unheeded.get(machine), better.found.get(machine)
    return {
        "preferred": preferred.of(machine),
        **with_reason("preferred_reason", why),
        "better_interface": instead[0].interface if instead else None,
        **with_reason("better_reason", instead[1] if instead else None),
    }
