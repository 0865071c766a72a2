"""The network interface to use for each machine: the owner's choice, or better interfaces found by probing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from app.api.snapshot import LinkInterfaces
from app.core.errors import AppError, BadInput, Busy, DoesNotFit, Fact, Reason
from app.core.household.link import Link, LinkEnd, better_ends, wrong_interface
from app.core.household.membership import Member
from app.core.ids import MachineId
from app.core.reasons import os_cause, sentence
from app.machine.interfaces import Interface
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically
from app.network import measured_paths
from app.network.network import Network
from app.network.sockets import Address, LocalInterface

log = logging.getLogger(__name__)

C = TypeVar("C", bound=LinkInterfaces)
Tried = tuple[MachineId, str, Address]
TRY_SECONDS = 3.0  # time limit of a probe: a slower interface is no better, and other measurements wait for it
MOST_TRIED = 1_000  # limit of remembered tries, because forged announcements may name many addresses
By = dict[MachineId, LocalInterface]


class BetterInterfaces:
    """Finds better interfaces by sending a few kilobytes. An interface that did not reach a machine is not tried again
    until `forget` is called."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._tried: set[Tried] = set()
        self.found: dict[MachineId, tuple[LinkEnd, Reason]] = {}  # the interface to use, and why

    def forget(self) -> None:
        """Forget all results after the network interfaces have changed."""
        self._tried.clear()
        self.found.clear()

    def keep_only(self, members: Collection[MachineId]) -> None:
        """Forget machines that left the household."""
        self._tried = {key for key in self._tried if key[0] in members}
        self.found = {machine: better for machine, better in self.found.items() if machine in members}

    async def check(
        self, machine: MachineId, link: Link, interfaces: Sequence[Interface], addresses: Iterable[Address]
    ) -> None:
        """Check whether a better interface exists for a link."""
        used = LinkEnd(link.kind, link.interface, link.negotiated_bits_per_s)
        ends = [
            LinkEnd(interface.kind, interface.name, interface.negotiated_bits_per_s)
            for interface in interfaces
            if interface.is_up and interface.addresses
        ]
        better = better_ends(used, ends)
        known = self.found.get(machine)
        if known is not None and known[0] not in better:
            del self.found[machine]
        if not better or machine in self.found:
            return
        where = tuple(addresses)
        for end in better:
            if await self._leads_there(machine, end, interfaces, where):
                up = self._network.links.get(machine)
                if up is not None:  # the link may have closed in the meantime
                    self.found[machine] = end, wrong_interface(up.name, used, end)
                return

    async def _leads_there(
        self, machine: MachineId, end: LinkEnd, interfaces: Sequence[Interface], addresses: Sequence[Address]
    ) -> bool:
        through = through_of(interfaces, end.interface)
        if len(self._tried) > MOST_TRIED:
            self._tried.clear()
        for way in addresses:
            key = (machine, end.interface, way)
            if through is None or key in self._tried:
                continue
            try:
                async with asyncio.timeout(TRY_SECONDS):
                    await measured_paths.round_trips(self._network, machine, way, through)
            except Busy:
                return False  # the address is tried again at the next look
            except (AppError, TimeoutError) as error:
                log.debug("%s does not lead to %s: %r", end.interface, way, error)
                self._tried.add(key)
                continue
            return True
        return False


def with_choice(described: C, machine: MachineId, preferred: InterfaceChoice, better: BetterInterfaces) -> C:
    """Add to the description of a link: the chosen interface, the reason if it is not in use, and a better
    interface if there is one.
    """
    why, instead = preferred.unused_reasons.get(machine), better.found.get(machine)
    better_reason = instead[1] if instead else None
    return msgspec.structs.replace(
        described,
        preferred=preferred.of(machine),
        preferred_reason=sentence(why),
        preferred_reason_facts=why,
        better_interface=instead[0].interface if instead else None,
        better_reason=sentence(better_reason),
        better_reason_facts=better_reason,
    )


class InterfaceChoice:
    """The interface that the owner chose for each machine. The choices are saved in `file`."""

    def __init__(self, file: Path, note: Callable[[Reason], None] = lambda _: None) -> None:
        self._file = file
        self._chosen: dict[MachineId, str] = load(file, note)
        self._unreachable: set[MachineId] = set()  # machines that their chosen interface does not reach
        self.unused_reasons: dict[MachineId, Reason] = {}  # why a chosen interface is not in use

    def of(self, machine: MachineId) -> str | None:
        """Return the chosen interface, or None if the best one should be used."""
        return self._chosen.get(machine)

    def choose(self, machine: MachineId, interface: str | None) -> None:
        """Save the choice. If that fails, change nothing and raise DoesNotFit."""
        chosen = {key: name for key, name in self._chosen.items() if key != machine}
        if interface is not None:
            chosen[machine] = interface
        try:
            write_atomically(self._file, msgspec.json.encode(chosen))
        except OSError as error:
            raise DoesNotFit("settings_unsaved", path=str(self._file), why=os_cause(error)) from error
        self._chosen = chosen
        self._unreachable.discard(machine)

    def mark_unreachable(self, machine: MachineId) -> None:
        """Record that the chosen interface does not reach the machine. The choice is ignored until `try_again` is
        called."""
        self._unreachable.add(machine)

    def try_again(self, machine: MachineId | None = None) -> None:
        """Try the chosen interface again after the interfaces or the machine's address have changed."""
        if machine is None:
            self._unreachable.clear()
        else:
            self._unreachable.discard(machine)

    def keep_only(self, members: Collection[MachineId]) -> None:
        """Forget machines that left the household."""
        for machine in self._chosen.keys() - set(members):
            try:
                self.choose(machine, None)
            except DoesNotFit as error:  # the saved choice has no effect, even after a restart
                log.warning("the interface chosen for a former member could not be deleted: %s", error.reason)

    def apply(self, by: By, interfaces: Iterable[Interface], members: Mapping[MachineId, Member]) -> None:
        """Update `by`, which maps each machine to the interface used to connect to it, from the owner's choices
        and the current interfaces.
        """
        every = tuple(interfaces)
        self.unused_reasons.clear()
        for machine in by.keys() - self._chosen.keys():
            del by[machine]
        for machine, chosen in self._chosen.items():
            through = through_of(every, chosen)
            if through is not None and machine not in self._unreachable:
                by[machine] = through
                continue
            by.pop(machine, None)
            name = members[machine].name if machine in members else machine[:8]
            facts: dict[str, Fact] = {"interface": chosen, "machine": name}
            code = "interface_away" if through is None else "interface_no_way"
            self.unused_reasons[machine] = Reason(code, facts)


def require_usable(interfaces: Iterable[Interface], name: str) -> None:
    """Raise BadInput unless this interface can be used for connections now."""
    every = tuple(interfaces)
    if name not in {interface.name for interface in every}:
        raise BadInput("interface_unknown", name=name)
    if through_of(every, name) is None:
        raise BadInput("interface_down", interface=name)


def through_of(interfaces: Iterable[Interface], name: str) -> LocalInterface | None:
    """Return the interface with this name if it can be used for connections now, otherwise None."""
    match = next((interface for interface in interfaces if interface.name == name), None)
    if match is None or not match.is_up or not match.addresses:
        return None
    return LocalInterface(match.name, match.addresses)


def load(file: Path, note: Callable[[Reason], None]) -> dict[MachineId, str]:
    """Return the saved choices. If the file is damaged, the best interfaces are used and the owner is asked to choose
    again."""

    def lost(aside: Path) -> None:
        note(Reason("log_node_interfaces_lost", {"path": str(aside)}))

    read = read_json_or_default(file, dict[str, str], "chosen interfaces", lost=lost)
    return {MachineId(machine): name for machine, name in read.items()}
