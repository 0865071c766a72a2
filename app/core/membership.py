"""Who belongs to the household: merge and evaluation of the signed log, in any order of arrival.

SAFETY.md 4. Nothing here verifies a signature: `Verify` is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from app.core.ids import MachineId
from app.core.operations import (
    MAX_TURN,
    NO_HOUSEHOLD,
    Add,
    Body,
    HouseholdId,
    Operation,
    OperationId,
    Remove,
    Rename,
    Role,
    SetRoles,
    clean_name,
    household_of,
    signed_bytes,
)

C = TypeVar("C", SetRoles, Rename)
Verify = Callable[[bytes, bytes, bytes], bool]  # (signer's DER, signed bytes, signature) -> good?

# 4,096 in all; removing stays possible when other lines fill the log
MAX_ADDS, MAX_REMOVES, MAX_ROLES, MAX_RENAMES = 2048, 1024, 512, 512


@dataclass(frozen=True, slots=True)
class Member:
    """A machine that belongs to the household now."""

    id: MachineId
    der: bytes
    name: str  # as it joined, or was renamed last; what it calls itself now is in its HELLO
    roles: frozenset[Role]
    renamed: OperationId | None = None  # the line that gave it this name, when it was renamed

    @property
    def is_guest(self) -> bool:
        """Whether hosts answer for it. One that may host as well, as lines of two admins can add up, is none."""
        return Role.GUEST in self.roles and Role.HOST not in self.roles


@dataclass(frozen=True, slots=True)
class Log:
    """What this machine knows of its household. Operations stand after the ones they rest on."""

    household: HouseholdId
    operations: tuple[Operation, ...] = ()


def merge(log: Log, arrived: Iterable[Operation], verify: Verify) -> Log:
    """The log with every operation of `arrived` that this machine can trust.

    An operation counts once its signer is known to be, or to have been, an admin; what is not is
    dropped, and comes again with the next exchange. `verify` is called once for each new one.
    """
    known = dict.fromkeys(log.operations)
    waiting = [operation for operation in dict.fromkeys(arrived) if operation not in known]
    admins, room = _ever_admins(log), _room(known)
    progress = True
    while progress and waiting:
        progress, later = False, []
        for operation in waiting:
            if not _may_enter(operation, log.household, admins):
                later.append(operation)
                continue
            progress = True
            der = _der_of_signer(operation, admins)
            payload = signed_bytes(operation.body, operation.signer)
            if room[type(operation.body)] > 0 and verify(der, payload, operation.signature):
                known[operation] = None
                room[type(operation.body)] -= 1
                _note_admin(operation, admins)
        waiting = later
    return Log(log.household, tuple(known))


def members(log: Log) -> Mapping[MachineId, Member]:
    """Everyone who belongs to the household now, from the log alone, in four passes."""
    admins = _ever_admins(log)
    removed = _removed(log, admins)
    found: dict[MachineId, Member] = {}
    progress = True
    while progress:
        progress = False
        for operation in log.operations:
            if isinstance(operation.body, Add) and _counts(operation, log, found, removed):
                member = _with_roles(found.get(operation.body.machine), operation.body)
                if found.get(member.id) != member:
                    found[member.id], progress = member, True
    changes = [operation for operation in log.operations if _counts(operation, log, found, removed)]
    roles, names = last_of(changes, SetRoles), last_of(changes, Rename)
    return {
        machine: _changed(member, roles.get(machine), names.get(machine))
        for machine, member in found.items()
        if machine not in removed
    }


def last_of(operations: Iterable[Operation], kind: type[C]) -> dict[MachineId, Operation]:
    """Pass 4: for each machine the line of this kind that counts: the highest turn, then the id."""
    last: dict[MachineId, tuple[int, OperationId, Operation]] = {}
    for operation in operations:
        body = operation.body
        if isinstance(body, kind):
            entry = (body.turn, operation.id, operation)
            last[body.machine] = max(entry, last.get(body.machine, entry), key=lambda one: one[:2])
    return {machine: operation for machine, (_, _, operation) in last.items()}


def next_turn(log: Log, machine: MachineId) -> int:
    """The turn with which a new line about `machine` counts before all that are known."""
    turns = (
        operation.body.turn
        for operation in log.operations
        if isinstance(operation.body, SetRoles | Rename) and operation.body.machine == machine
    )
    return min(max(turns, default=0) + 1, MAX_TURN)


def removed_machines(log: Log) -> frozenset[MachineId]:
    """Everyone who was removed, and can never come back under the same id."""
    return frozenset(_removed(log, _ever_admins(log)))


def added_by(log: Log, machine: MachineId) -> tuple[Operation, ...]:
    """The `add`s signed by `machine`: whoever removes it confirms which of them are kept."""
    return tuple(
        operation
        for operation in log.operations
        if operation.signer == machine
        and isinstance(operation.body, Add)
        and operation.body.machine != machine
    )


def _may_enter(
    operation: Operation, household: HouseholdId, admins: Mapping[MachineId, bytes]
) -> bool:
    if _founds(operation, household):
        return True
    return operation.body.household == household and operation.signer in admins


def _founds(operation: Operation, household: HouseholdId) -> bool:
    """Whether this is the operation in which the first machine added itself."""
    body = operation.body
    return (
        isinstance(body, Add)
        and body.household == NO_HOUSEHOLD
        and body.machine == operation.signer
        and household_of(operation) == household
    )


def _room(known: Iterable[Operation]) -> dict[type[Body], int]:
    """How many more operations of each kind the log may take."""
    room: dict[type[Body], int] = {
        Add: MAX_ADDS, Remove: MAX_REMOVES, SetRoles: MAX_ROLES, Rename: MAX_RENAMES
    }  # fmt: skip
    for operation in known:
        room[type(operation.body)] -= 1
    return room


def _ever_admins(log: Log) -> dict[MachineId, bytes]:
    """Pass 1: all who ever were admin, removals ignored, with their certificates."""
    admins: dict[MachineId, bytes] = {}
    before = -1
    while before != len(admins):
        before = len(admins)
        for operation in log.operations:
            if _founds(operation, log.household) or operation.signer in admins:
                _note_admin(operation, admins)
    return admins


def _note_admin(operation: Operation, admins: dict[MachineId, bytes]) -> None:
    body = operation.body
    if isinstance(body, Add) and Role.ADMIN in body.roles:
        admins[body.machine] = body.der


def _der_of_signer(operation: Operation, admins: Mapping[MachineId, bytes]) -> bytes:
    if isinstance(operation.body, Add) and operation.body.machine == operation.signer:
        return operation.body.der  # the first operation; the id is the hash of this very DER
    return admins[operation.signer]


def _removed(log: Log, admins: Collection[MachineId]) -> dict[MachineId, frozenset[OperationId]]:
    """Pass 2: all who were removed, each with what every one of their removals keeps."""
    removed: dict[MachineId, frozenset[OperationId]] = {}
    for operation in log.operations:
        body = operation.body
        if isinstance(body, Remove) and operation.signer in admins:
            kept = frozenset(body.kept)
            removed[body.machine] = removed.get(body.machine, kept) & kept
    return removed


def _counts(
    operation: Operation,
    log: Log,
    found: Mapping[MachineId, Member],
    removed: Mapping[MachineId, frozenset[OperationId]],
) -> bool:
    """Pass 3: whether a line rests on a chain of counted `add`s from the first machine."""
    if _founds(operation, log.household):
        return True
    signer = found.get(operation.signer)
    if signer is None or Role.ADMIN not in signer.roles:
        return False
    return operation.signer not in removed or operation.id in removed[operation.signer]


def _with_roles(member: Member | None, add: Add) -> Member:
    """Roles of several `add`s add up; of several names the first in the alphabet is taken, so
    that the order of arrival does not matter."""
    roles, name = frozenset(add.roles), clean_name(add.name)
    if member is None:
        return Member(add.machine, add.der, name, roles)
    return Member(member.id, member.der, min(member.name, name), member.roles | roles)


def _changed(member: Member, roles: Operation | None, name: Operation | None) -> Member:
    """The member as the last lines about it have it. The right to sign stays as it was added."""
    if roles is not None and isinstance(roles.body, SetRoles):
        admin = member.roles & {Role.ADMIN}
        member = replace(member, roles=frozenset(roles.body.roles) | admin)
    if name is not None and isinstance(name.body, Rename):
        member = replace(member, name=clean_name(name.body.name), renamed=name.id)
    return member
