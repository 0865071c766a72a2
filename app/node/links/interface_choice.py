"""The interface for connections to each machine: the owner's choice, and better ones found by trying."""

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
TRY_SECONDS = 3.0  # a slower reply means it is no better, and measurements wait for it
MOST_TRIED = 1_000  # forged announcements may name many addresses
By = dict[MachineId, LocalInterface]


class BetterInterfaces:
    """Looks for better interfaces by sending a few kilobytes. An interface that did not reach a machine is not tried
    again until `forget`."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._tried: set[Tried] = set()
        self.found: dict[MachineId, tuple[LinkEnd, Reason]] = {}  # the interface to use, and why

    def forget(self) -> None:
        """Forget all results, because the interfaces have changed."""
        self._tried.clear()
        self.found.clear()

    def keep_only(self, members: Collection[MachineId]) -> None:
        """Forget machines that were removed."""
        self._tried = {key for key in self._tried if key[0] in members}
        self.found = {machine: better for machine, better in self.found.items() if machine in members}

    async def look(
        self, machine: MachineId, link: Link, interfaces: Sequence[Interface], addresses: Iterable[Address]
    ) -> None:
        """Check whether this link could use a better interface."""
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
                if up is not None:  # it may have closed in the meantime
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
                return False  # tried at the next look
            except (AppError, TimeoutError) as error:
                log.debug("%s does not lead to %s: %r", end.interface, way, error)
                self._tried.add(key)
                continue
            return True
        return False


def with_choice(described: C, machine: MachineId, preferred: InterfaceChoice, better: BetterInterfaces) -> C:
    """Return a link with the chosen interface, why it is not in use, and which one would be better."""
    why, instead = preferred.unheeded.get(machine), better.found.get(machine)
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
    """The owner's chosen interface for each machine, saved in `file`."""

    def __init__(self, file: Path, note: Callable[[Reason], None] = lambda _: None) -> None:
        self._file = file
        self._chosen: dict[MachineId, str] = load(file, note)
        self._no_way: set[MachineId] = set()  # machines that the chosen interface does not reach
        self.unheeded: dict[MachineId, Reason] = {}  # why a choice is not followed now

    def of(self, machine: MachineId) -> str | None:
        """Return the chosen interface, or None if the best one is used."""
        return self._chosen.get(machine)

    def choose(self, machine: MachineId, interface: str | None) -> None:
        """Save the choice. Raises DoesNotFit if that fails; then nothing changes."""
        chosen = {key: name for key, name in self._chosen.items() if key != machine}
        if interface is not None:
            chosen[machine] = interface
        try:
            write_atomically(self._file, msgspec.json.encode(chosen))
        except OSError as error:
            raise DoesNotFit("settings_unsaved", path=str(self._file), why=os_cause(error)) from error
        self._chosen = chosen
        self._no_way.discard(machine)

    def leads_nowhere(self, machine: MachineId) -> None:
        """Record that the chosen interface does not reach that machine until something changes."""
        self._no_way.add(machine)

    def try_again(self, machine: MachineId | None = None) -> None:
        """Try the chosen interfaces again, because interfaces or the machine's address changed."""
        if machine is None:
            self._no_way.clear()
        else:
            self._no_way.discard(machine)

    def keep_only(self, members: Collection[MachineId]) -> None:
        """Forget machines that were removed."""
        for machine in self._chosen.keys() - set(members):
            try:
                self.choose(machine, None)
            except DoesNotFit as error:  # the choice is also ignored after the next start
                log.warning("a choice cannot be forgotten: %s", error.reason)

    def apply(self, by: By, interfaces: Iterable[Interface], members: Mapping[MachineId, Member]) -> None:
        """Set in `by` how to dial each machine with the interfaces that exist now."""
        every = tuple(interfaces)
        self.unheeded.clear()
        for machine in by.keys() - self._chosen.keys():
            del by[machine]
        for machine, chosen in self._chosen.items():
            through = through_of(every, chosen)
            if through is not None and machine not in self._no_way:
                by[machine] = through
                continue
            by.pop(machine, None)
            name = members[machine].name if machine in members else machine[:8]
            facts: dict[str, Fact] = {"interface": chosen, "machine": name}
            code = "interface_away" if through is None else "interface_no_way"
            self.unheeded[machine] = Reason(code, facts)


def checked(interfaces: Iterable[Interface], name: str) -> None:
    """Raise BadInput unless connections can leave through this interface now."""
    every = tuple(interfaces)
    if name not in {interface.name for interface in every}:
        raise BadInput("interface_unknown", name=name)
    if through_of(every, name) is None:
        raise BadInput("interface_down", interface=name)


def through_of(interfaces: Iterable[Interface], name: str) -> LocalInterface | None:
    """Return the interface if connections can leave through it now."""
    match = next((interface for interface in interfaces if interface.name == name), None)
    if match is None or not match.is_up or not match.addresses:
        return None
    return LocalInterface(match.name, match.addresses)


def load(file: Path, note: Callable[[Reason], None]) -> dict[MachineId, str]:
    """Return the saved choices. If the file is damaged, the best interfaces are used and the owner is told to choose
    again."""

    def lost(aside: Path) -> None:
        note(Reason("log_node_interfaces_lost", {"path": str(aside)}))

    read = read_json_or_default(file, dict[str, str], "chosen interfaces", lost=lost)
    return {MachineId(machine): name for machine, name in read.items()}
