"""Which interface of this computer its owner wants used for each machine, and whether that is so."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from app.core.errors import BadInput, DoesNotFit, Fact, Reason
from app.core.household.membership import Member
from app.core.ids import MachineId
from app.machine.interfaces import Interface
from app.machine.json_state import read_or
from app.machine.paths import write_atomically
from app.network.sockets import Through

log = logging.getLogger(__name__)

By = dict[MachineId, Through]


class InterfaceChoice:
    """Kept in `file`. `apply` says by which interface each machine is dialled."""

    def __init__(self, file: Path, note: Callable[[Reason], None] = lambda _: None) -> None:
        self._file = file
        self._chosen: dict[MachineId, str] = load(file, note)
        self._no_way: set[MachineId] = set()  # the chosen interface does not lead there
        self.unheeded: dict[MachineId, Reason] = {}  # why a choice is not followed now

    def of(self, machine: MachineId) -> str | None:
        """The chosen interface; None: whichever is best."""
        return self._chosen.get(machine)

    def choose(self, machine: MachineId, interface: str | None) -> None:
        """Remember it. Raises DoesNotFit when the disk does not take it; then nothing changes."""
        chosen = {key: name for key, name in self._chosen.items() if key != machine}
        if interface is not None:
            chosen[machine] = interface
        try:
            write_atomically(self._file, msgspec.json.encode(chosen))
        except OSError as error:
            why = error.strerror or str(error)
            raise DoesNotFit("settings_unsaved", path=str(self._file), why=why) from error
        self._chosen = chosen
        self._no_way.discard(machine)

    def leads_nowhere(self, machine: MachineId) -> None:
        """The chosen interface does not reach that machine, until something changes."""
        self._no_way.add(machine)

    def try_again(self, machine: MachineId | None = None) -> None:
        """Something changed: interfaces, or where that machine is."""
        if machine is None:
            self._no_way.clear()
        else:
            self._no_way.discard(machine)

    def keep_only(self, members: Collection[MachineId]) -> None:
        """Nothing is kept of machines that were removed."""
        for machine in self._chosen.keys() - set(members):
            try:
                self.choose(machine, None)
            except DoesNotFit as error:  # it is passed over after the next start too
                log.warning("a choice cannot be forgotten: %s", error.reason)

    def apply(self, by: By, interfaces: Iterable[Interface], members: Mapping[MachineId, Member]) -> None:
        """Have `by` say how to dial each machine, with what is there now."""
        every = tuple(interfaces)
        self.unheeded.clear()
        for machine in by.keys() - self._chosen.keys():
            del by[machine]
        for machine, chosen in self._chosen.items():
            found = through_of(every, chosen)
            if found is not None and machine not in self._no_way:
                by[machine] = found
                continue
            by.pop(machine, None)
            name = members[machine].name if machine in members else machine[:8]
            facts: dict[str, Fact] = {"interface": chosen, "machine": name}
            code = "interface_away" if found is None else "interface_no_way"
            self.unheeded[machine] = Reason(code, facts)


def checked(interfaces: Iterable[Interface], name: str) -> None:
    """Raises BadInput unless connections can leave by that interface now."""
    every = tuple(interfaces)
    if name not in {one.name for one in every}:
        raise BadInput("interface_unknown", name=name)
    if through_of(every, name) is None:
        raise BadInput("interface_down", interface=name)


def through_of(interfaces: Iterable[Interface], name: str) -> Through | None:
    """That interface, if connections can leave by it now."""
    found = next((one for one in interfaces if one.name == name), None)
    if found is None or not found.is_up or not found.addresses:
        return None
    return Through(found.name, found.addresses)


def load(file: Path, note: Callable[[Reason], None]) -> dict[MachineId, str]:
    """What was chosen. Where that is damaged the best way is taken, and one is told to choose again."""

    def lost(aside: Path) -> None:
        note(Reason("log_node_interfaces_lost", {"path": str(aside)}))

    read = read_or(file, dict[str, str], "chosen interfaces", lost=lost)
    return {MachineId(machine): name for machine, name in read.items()}
