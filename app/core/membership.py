"""Who belongs to the household: merge and evaluation of the signed log, in any order of arrival.

SAFETY.md 4. Nothing here verifies a signature: `Verify` is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from app.core.ids import MachineId
from app.core.operations import (
    NO_HOUSEHOLD,
    Add,
    HouseholdId,
    Operation,
    OperationId,
    Remove,
    Role,
    clean_name,
    household_of,
    signed_bytes,
)

Verify = Callable[[bytes, bytes, bytes], bool]  # (signer's DER, signed bytes, signature) -> good?

MAX_ADDS, MAX_REMOVES = 3072, 1024  # 4,096 in all; removing stays possible when adds fill the log


@dataclass(frozen=True, slots=True)
class Member:
    """A machine that belongs to the household now."""

    id: MachineId
    der: bytes
    name: str  # as it was when it joined; what it calls itself now is in its HELLO
    roles: frozenset[Role]


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
    """Everyone who belongs to the household now, from the log alone, in three passes."""
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
    return {machine: member for machine, member in found.items() if machine not in removed}


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


def _room(known: Iterable[Operation]) -> dict[type[Add | Remove], int]:
    """How many more operations of each kind the log may take."""
    room: dict[type[Add | Remove], int] = {Add: MAX_ADDS, Remove: MAX_REMOVES}
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
    """Pass 3: whether an `add` rests on a chain of counted `add`s from the first machine."""
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
