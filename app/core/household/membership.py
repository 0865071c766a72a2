"""The members of the household, derived from the signed log independently of the order in which its lines arrived.

See SAFETY.md 4. This module neither verifies signatures nor reads certificates: callers pass in a `Verify` and a
`CertificateCheck` function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from app.core.household.operations import (
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
    household_of,
    signed_bytes,
)
from app.core.ids import MachineId, clean_name, free_name

C = TypeVar("C", SetRoles, Rename)
# (DER certificate of the signer, signed bytes, signature) -> whether the signature is valid
Verify = Callable[[bytes, bytes, bytes], bool]
CertificateCheck = Callable[[bytes], bool]  # (DER certificate of the new member) -> whether it may be pinned
LineLimits = Mapping[type[Body], int]

# The maximum number of lines, 4,096 in total. Half of them are reserved for the founder, so that it can remove other
# admins no matter how much they sign.
FOUNDER_ROOM: LineLimits = {Add: 1024, Remove: 512, SetRoles: 256, Rename: 256}
OTHERS_ROOM: LineLimits = {Add: 1024, Remove: 512, SetRoles: 256, Rename: 256}  # for all other signers together
SIGNER_ROOM: LineLimits = {Add: 256, Remove: 128, SetRoles: 64, Rename: 64}  # for each signer except the founder


@dataclass(frozen=True, slots=True)
class Member:
    """A current member of the household."""

    id: MachineId
    der: bytes
    name: str  # the name under which it joined or was last renamed; its HELLO contains the name that it uses now
    roles: frozenset[Role]
    renamed: OperationId | None = None  # the operation that gave it this name, if it was renamed

    @property
    def is_guest(self) -> bool:
        """Return whether the machine may only use models that hosts run for it.

        Lines from two admins can combine to give a machine both roles. A machine that may also host is not a guest.
        """
        return Role.GUEST in self.roles and Role.HOST not in self.roles

    @property
    def may_ask(self) -> bool:
        """Return whether this machine may ask the models of hosts. A machine that only lends may not."""
        return bool({Role.GUEST, Role.HOST} & self.roles)


@dataclass(frozen=True, slots=True)
class Log:
    """The household log on this machine. Each operation comes after the operations it depends on."""

    household: HouseholdId
    operations: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The result of merging operations into the log."""

    log: Log
    new: tuple[Operation, ...]  # operations to relay to other members
    forged: tuple[Operation, ...]  # operations with invalid signatures, which no honest member relays
    unpinnable: tuple[Operation, ...]  # operations with certificates that must not be pinned
    unauthorized: tuple[Operation, ...]  # operations by signers who are not known to be admins
    n_outside: int  # the number of unfounded operations and of those about machines that nobody has added


def merge(log: Log, arrived: Iterable[Operation], verify: Verify, fit: CertificateCheck) -> MergeResult:
    """Return the log with each operation in `arrived` that this machine can trust.

    An operation is trusted if its signer is or was an admin and the machine that it concerns has been added. Other
    operations are dropped and arrive again with the next exchange. If there is not enough room for all operations, the
    choice does not depend on their order of arrival. `verify` is called once for each new operation.
    """
    known = dict.fromkeys(log.operations)
    waiting = [operation for operation in dict.fromkeys(arrived) if operation not in known]
    forged, unpinnable = [], []

    def trusted(operation: Operation, admins: Mapping[MachineId, bytes]) -> bool:
        body = operation.body
        if isinstance(body, Add) and not fit(body.der):
            unpinnable.append(operation)
            return False
        payload = signed_bytes(body, operation.signer)
        if not verify(_der_of_signer(operation, admins), payload, operation.signature):
            forged.append(operation)
            return False
        return True

    outside = _enter(log.household, known, waiting, trusted)
    admins = _ever_admins(Log(log.household, tuple(known)))
    merged = Log(log.household, _within_room(log.household, tuple(known)))
    before = set(log.operations)
    new = tuple(operation for operation in merged.operations if operation not in before)
    unauthorized = tuple(operation for operation in outside if operation.signer not in admins)
    return MergeResult(merged, new, tuple(forged), tuple(unpinnable), unauthorized, len(outside))


def is_superseded(operation: Operation, log: Log) -> bool:
    """Return whether the same signer later gave this machine another name or other roles."""
    last = _last_of_signer(log.operations).get(_subject(operation), operation)
    return isinstance(operation.body, SetRoles | Rename) and last != operation


def founder(log: Log) -> MachineId | None:
    """Return the machine that founded the household, or None if the founding operation is missing."""
    founding = (line.signer for line in log.operations if _founds(line, log.household))
    return next(founding, None)


def members(log: Log) -> Mapping[MachineId, Member]:
    """Return the current members of the household, derived from the log in four passes. No two of them have the same
    name.
    """
    counted, removed = _counted_members(log)
    changes = _changes(log, counted, removed)
    roles, names = effective_lines(changes, SetRoles), effective_lines(changes, Rename)
    now = {
        machine: _changed(member, roles.get(machine), names.get(machine))
        for machine, member in counted.items()
        if machine not in removed
    }
    return _told_apart(now, founder(log))


def _told_apart(now: Mapping[MachineId, Member], first: MachineId | None) -> Mapping[MachineId, Member]:
    """Append a number to names that several members share. Different admins may have chosen the same name.

    The founder keeps its name. Among other machines, the one with the lowest id keeps it, regardless of the order of
    arrival.
    """
    names: dict[MachineId, str] = {}
    for machine in sorted(now, key=lambda machine_id: (machine_id != first, machine_id)):
        names[machine] = free_name(now[machine].name, names.values())
    return {machine: replace(member, name=names[machine]) for machine, member in now.items()}


def effective_lines(operations: Iterable[Operation], kind: type[C]) -> dict[MachineId, Operation]:
    """Return the line of this kind that applies to each machine (pass 4).

    The line with the highest turn applies. If several have the same turn, the one with the highest id applies.
    """
    last: dict[MachineId, tuple[int, OperationId, Operation]] = {}
    for operation in operations:
        body = operation.body
        if isinstance(body, kind):
            entry = (body.turn, operation.id, operation)
            last[body.machine] = max(entry, last.get(body.machine, entry), key=lambda item: item[:2])
    return {machine: operation for machine, (_, _, operation) in last.items()}


def next_turn(log: Log, machine: MachineId, leaving: MachineId | None = None) -> int:
    """Return the turn that a new line about `machine` needs in order to supersede all lines that count now.

    leaving: a machine whose lines no longer count, however high their turns are.
    """
    turns = (
        operation.body.turn
        for operation in _changes(log, *_counted_members(log))
        if isinstance(operation.body, SetRoles | Rename)
        and operation.body.machine == machine
        and operation.signer != leaving
    )
    return min(max(turns, default=0) + 1, MAX_TURN)


def removed_machines(log: Log) -> frozenset[MachineId]:
    """Return the removed machines, which can never join again under the same id."""
    return frozenset(_removed(log, _ever_admins(log)))


def added_by(log: Log, machine: MachineId) -> tuple[Operation, ...]:
    """Return the `add` operations signed by `machine`.

    An operation that removes the machine must state which of them to keep.
    """
    return tuple(
        operation
        for operation in log.operations
        if operation.signer == machine and isinstance(operation.body, Add) and operation.body.machine != machine
    )


def _enter(
    household: HouseholdId,
    known: dict[Operation, None],
    waiting: Sequence[Operation],
    trusted: Callable[[Operation, Mapping[MachineId, bytes]], bool],
) -> Sequence[Operation]:
    """Move each operation from `waiting` to `known` once everything it depends on is known.

    Return the operations that are still waiting.
    """
    admins = _ever_admins(Log(household, tuple(known)))
    added = {line.body.machine for line in known if isinstance(line.body, Add)}
    progress = True
    while progress and waiting:
        progress, later = False, []
        for operation in waiting:
            if not _may_enter(operation, household, admins, added):
                later.append(operation)
                continue
            progress = True
            if trusted(operation, admins):
                known[operation] = None
                _note_admin(operation, admins)
                if isinstance(operation.body, Add):
                    added.add(operation.body.machine)
        waiting = later
    return waiting


def _may_enter(
    operation: Operation, household: HouseholdId, admins: Mapping[MachineId, bytes], added: Collection[MachineId]
) -> bool:
    """Return whether an operation may be recorded.

    An operation about a machine that was never added would waste space.
    """
    body = operation.body
    if _founds(operation, household):
        return True
    about = isinstance(body, Add) or body.machine in added
    return body.household == household and operation.signer in admins and about


def _founds(operation: Operation, household: HouseholdId) -> bool:
    """Return whether the founder added itself in this operation."""
    body = operation.body
    return (
        isinstance(body, Add)
        and body.household == NO_HOUSEHOLD
        and body.machine == operation.signer
        and household_of(operation) == household
    )


def _within_room(household: HouseholdId, operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """Return the operations that fit into the log, chosen independently of their order of arrival.

    Operations of admins closer to the founder take precedence. Among the operations of one admin, the operations that a
    removal keeps take precedence.
    """
    first = founder(Log(household, operations))
    by_signer: dict[MachineId, list[Operation]] = {}
    for operation in operations:
        by_signer.setdefault(operation.signer, []).append(operation)
    if first is None or _all_fit(first, by_signer):
        return operations
    ranks = _Ranks(operations, household)
    left = dict(OTHERS_ROOM)
    signers: list[MachineId] = []
    chosen: set[Operation] = set()
    added: set[MachineId] = set()
    level = {first}
    while level:
        following: set[MachineId] = set()
        for signer in sorted(level):
            adds = [line for line in by_signer.get(signer, ()) if isinstance(line.body, Add)]
            kept = ranks.kept(signer, signers)
            taken = _taken(ranks.sorted(adds, kept), Add, left, is_first=signer == first)
            signers.append(signer)
            chosen.update(taken)
            added.update(line.body.machine for line in taken)
            following.update(line.body.machine for line in taken if _makes_admin(line))
        level = following.difference(signers)
    for signer in signers:
        kept = ranks.kept(signer, signers)
        for kind in (Remove, SetRoles, Rename):
            lines = [
                line for line in by_signer.get(signer, ()) if isinstance(line.body, kind) and line.body.machine in added
            ]
            chosen.update(_taken(ranks.sorted(lines, kept), kind, left, is_first=signer == first))
    ordered: dict[Operation, None] = {}
    _enter(household, ordered, [line for line in operations if line in chosen], lambda *_: True)
    return tuple(ordered)


def _all_fit(first: MachineId, by_signer: Mapping[MachineId, Sequence[Operation]]) -> bool:
    used = dict.fromkeys(OTHERS_ROOM, 0)
    for signer, lines in by_signer.items():
        room = FOUNDER_ROOM if signer == first else SIGNER_ROOM
        for kind in room:
            count = sum(isinstance(line.body, kind) for line in lines)
            if count > room[kind]:
                return False
            if signer != first:
                used[kind] += count
    return all(used[kind] <= OTHERS_ROOM[kind] for kind in used)


class _Ranks:
    """The priority of each signer's operations when they do not all fit."""

    def __init__(self, operations: Sequence[Operation], household: HouseholdId) -> None:
        self._household = household
        self._last = _last_of_signer(operations)
        self._removals: dict[MachineId, list[Operation]] = {}
        for line in operations:
            if isinstance(line.body, Remove):
                self._removals.setdefault(line.body.machine, []).append(line)

    def kept(self, signer: MachineId, before: Collection[MachineId]) -> Collection[OperationId]:
        """Return the operations of `signer` that its removals keep.

        Only removals signed by admins in `before` are considered.
        """
        removals = [
            line.body.kept
            for line in self._removals.get(signer, ())
            if line.signer in before and line.signer != signer and isinstance(line.body, Remove)
        ]
        return {operation for kept in removals for operation in kept}

    def sorted(self, lines: Iterable[Operation], kept: Collection[OperationId]) -> Iterator[Operation]:
        """Yield the most important operations first.

        Operations of equal importance are sorted by hash, which is the same on every machine.
        """

        def rank(line: Operation) -> tuple[bool, bool, bool, OperationId]:
            changes = isinstance(line.body, SetRoles | Rename)
            superseded = changes and self._last[_subject(line)] != line
            return not _founds(line, self._household), line.id not in kept, superseded, line.id

        return iter(sorted(lines, key=rank))


def _taken(
    lines: Iterator[Operation], kind: type[Body], left: dict[type[Body], int], *, is_first: bool
) -> list[Operation]:
    """Return as many lines as fit. Lines of signers other than the founder are deducted from `left`."""
    room = FOUNDER_ROOM[kind] if is_first else min(SIGNER_ROOM[kind], left[kind])
    taken = [line for _, line in zip(range(room), lines, strict=False)]
    if not is_first:
        left[kind] -= len(taken)
    return taken


def _subject(operation: Operation) -> tuple[MachineId, type[Body], MachineId]:
    return operation.signer, type(operation.body), operation.body.machine


def _last_of_signer(operations: Iterable[Operation]) -> dict[tuple[MachineId, type[Body], MachineId], Operation]:
    """Return each signer's latest operation on the name, and on the roles, of each machine."""
    lines: dict[tuple[MachineId, type[Body], MachineId], list[Operation]] = {}
    for line in operations:
        if isinstance(line.body, SetRoles | Rename):
            lines.setdefault(_subject(line), []).append(line)
    return {subject: max(changes, key=_turn) for subject, changes in lines.items()}


def _turn(operation: Operation) -> tuple[int, OperationId]:
    body = operation.body
    return (body.turn if isinstance(body, SetRoles | Rename) else 0), operation.id


def _makes_admin(operation: Operation) -> bool:
    return isinstance(operation.body, Add) and Role.ADMIN in operation.body.roles


def _ever_admins(log: Log) -> dict[MachineId, bytes]:
    """Return the certificates of all machines that were ever admins, ignoring removals (pass 1)."""
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
        return operation.body.der  # in the founding operation, the signer's id is the hash of this certificate
    return admins[operation.signer]


def _removed(log: Log, admins: Collection[MachineId]) -> dict[MachineId, frozenset[OperationId]]:
    """Return, for each removed machine, the operations that all its removals keep (pass 2)."""
    removed: dict[MachineId, frozenset[OperationId]] = {}
    for operation in log.operations:
        body = operation.body
        if isinstance(body, Remove) and operation.signer in admins:
            kept = frozenset(body.kept)
            removed[body.machine] = removed.get(body.machine, kept) & kept
    return removed


def _counted_members(log: Log) -> tuple[dict[MachineId, Member], dict[MachineId, frozenset[OperationId]]]:
    """Run pass 3, and return its result and that of pass 2.

    The result of pass 3 contains all machines whose chain of `add`s leads back to the founder, including removed ones.
    """
    removed = _removed(log, _ever_admins(log))
    counted: dict[MachineId, Member] = {}
    progress = True
    while progress:
        progress = False
        for operation in log.operations:
            if isinstance(operation.body, Add) and _counts(operation, log, counted, removed):
                member = _with_roles(counted.get(operation.body.machine), operation.body)
                if counted.get(member.id) != member:
                    counted[member.id], progress = member, True
    return counted, removed


def _changes(
    log: Log, counted: Mapping[MachineId, Member], removed: Mapping[MachineId, frozenset[OperationId]]
) -> list[Operation]:
    return [line for line in log.operations if _counts(line, log, counted, removed)]


def _counts(
    operation: Operation,
    log: Log,
    counted: Mapping[MachineId, Member],
    removed: Mapping[MachineId, frozenset[OperationId]],
) -> bool:
    """Return whether a chain of counted `add`s leads from the founder to the signer and no removal voids this line."""
    if _founds(operation, log.household):
        return True
    signer = counted.get(operation.signer)
    if signer is None or Role.ADMIN not in signer.roles:
        return False
    return operation.signer not in removed or operation.id in removed[operation.signer]


def _with_roles(member: Member | None, add: Add) -> Member:
    """Merge an `add` into a member.

    Roles are combined and the alphabetically first name is used, so the order of arrival does not matter.
    """
    roles, name = frozenset(add.roles), clean_name(add.name)
    if member is None:
        return Member(add.machine, add.der, name, roles)
    return Member(member.id, member.der, min(member.name, name), member.roles | roles)


def _changed(member: Member, roles: Operation | None, name: Operation | None) -> Member:
    """Return the member with its latest roles and name. Only its original `add` determines the admin role."""
    if roles is not None and isinstance(roles.body, SetRoles):
        admin = member.roles & {Role.ADMIN}
        member = replace(member, roles=frozenset(roles.body.roles) | admin)
    if name is not None and isinstance(name.body, Rename):
        member = replace(member, name=clean_name(name.body.name), renamed=name.id)
    return member
