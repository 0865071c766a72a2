"""This machine's copy of the household log, including a machine that has been admitted on trial."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from app.core.errors import BadInput, Damaged, DoesNotFit, Refused
from app.core.household.membership import (
    Log,
    Member,
    MergeResult,
    effective_lines,
    founder,
    is_superseded,
    members,
    merge,
    next_turn,
    removed_machines,
)
from app.core.household.operations import (
    FIRST_ROLES,
    NO_HOUSEHOLD,
    Add,
    BadOperation,
    Body,
    HouseholdId,
    Operation,
    OperationId,
    Remove,
    Rename,
    Role,
    SetRoles,
    decode,
    encode,
    household_of,
    signed_bytes,
)
from app.core.ids import MachineId, clean_name, free_name, machine_id
from app.core.reasons import os_cause
from app.decoding import decode as decode_json
from app.network.identity import HOUSEHOLD_NAME, Identity, Write, is_fit, verify
from app.network.sockets import Address

ADDRESSES_OF_ONE_MACHINE = 8
Addresses = Mapping[MachineId, tuple[Address, ...]]

log = logging.getLogger(__name__)


class _StoredLog(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the household file."""

    household: str
    operations: list[str]


class LogStore:
    """The files of the household log and of the known addresses in `directory`. Each file is always replaced as a
    whole."""

    def __init__(self, directory: Path, write: Write) -> None:
        self._write_file = write
        self._log = directory / HOUSEHOLD_NAME
        self._addresses = directory / "addresses.json"

    async def load(self) -> Log | None:
        """Return the stored log, or None. All signatures are verified again. Raises Damaged("household_damaged")."""
        return await asyncio.to_thread(self._load)

    async def save(self, log: Log) -> None:
        """Save `log`. Raises DoesNotFit("household_unsaved") if it cannot be written to disk."""
        lines = [encode(operation).decode("ascii") for operation in log.operations]
        content = json.dumps({"household": log.household, "operations": lines}, indent=1)
        await self._write(self._log, content)

    async def forget(self) -> None:
        """Delete the household's files."""
        for path in (self._log, self._addresses):
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def load_addresses(self) -> Addresses:
        """Return the addresses at which machines were reached, latest first. Errors are ignored, since these are only
        hints."""
        try:
            content = await asyncio.to_thread(self._addresses.read_bytes)
            return {
                machine_id(machine): tuple(Address.parse(text) for text in places)
                for machine, places in decode_json(content, dict[str, list[str]]).items()
            }
        except (OSError, ValueError, RecursionError, BadInput):
            return {}

    async def save_addresses(self, addresses: Addresses) -> None:
        """Save the addresses. Raises DoesNotFit like `save`."""
        fields = {
            machine: [str(place) for place in places[:ADDRESSES_OF_ONE_MACHINE]]
            for machine, places in addresses.items()
        }
        await self._write(self._addresses, json.dumps(fields, indent=1))

    def _load(self) -> Log | None:
        """Read and verify the log.

        Operations that earlier versions accepted but the current rules forbid are dropped. Damage is never ignored,
        since the damaged line may be a removal.
        """
        try:
            kept = decode_json(self._log.read_bytes(), _StoredLog)
            household = HouseholdId(machine_id(kept.household))
            operations = [decode(line) for line in kept.operations]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise Damaged("household_damaged", path=str(self._log)) from error
        merged = merge(Log(household), operations, verify, is_fit)
        if merged.forged or merged.unauthorized or not merged.log.operations:
            raise Damaged("household_damaged", path=str(self._log))
        if left_out := len(set(operations)) - len(merged.log.operations):
            log.warning(
                "%d operations of the household log were dropped, since the current rules forbid them", left_out
            )
        return merged.log

    async def _write(self, path: Path, content: str) -> None:
        try:
            await asyncio.to_thread(self._write_file, path, content.encode("utf-8"))
        except OSError as error:
            raise DoesNotFit("household_unsaved", path=str(path), why=os_cause(error)) from error


def sign_operation(identity: Identity, body: Body) -> Operation:
    """Sign `body` as this machine, and return the operation."""
    return Operation(body, identity.id, identity.sign(signed_bytes(body, identity.id)))


def new_household(identity: Identity, name: str) -> Log:
    """Create the log of a new household with this machine as its first member."""
    body = Add(NO_HOUSEHOLD, identity.id, identity.der, clean_name(name), FIRST_ROLES)
    first = sign_operation(identity, body)
    return Log(household_of(first), (first,))


def decode_lines(lines: Iterable[str]) -> list[Operation]:
    """Decode the lines that a peer sent, skipping invalid ones."""
    operations = []
    for line in lines:
        try:
            operations.append(decode(line))
        except BadOperation:
            continue
    return operations


@dataclass(frozen=True, slots=True)
class MergeSummary:
    """The result of merging lines from a peer.

    n_false: the number of lines that no honest member would relay.
    n_outside: the number of lines that depend on unknown operations.
    """

    new: tuple[Operation, ...] = ()
    n_false: int = 0
    n_outside: int = 0


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The result of joining a household. At this point, only the identity of `peer` has been verified."""

    household: HouseholdId
    operations: tuple[Operation, ...]
    peer: MachineId
    peer_name: str
    peer_address: Address


class LogKeeper:
    """The owner of the household log, which makes all changes to it. Calls `changed` if the members may have
    changed."""

    def __init__(self, identity: Identity, store: LogStore, changed: Callable[[], None]) -> None:
        self.log: Log | None = None
        self._me, self._store, self._changed = identity, store, changed
        # an `add` that counts only on this machine until the new member's link is up
        self._trial: Operation | None = None
        self._members: Mapping[MachineId, Member] = {}
        self._confirmed: Mapping[MachineId, Member] = {}
        self._addresses: dict[MachineId, tuple[Address, ...]] = {}
        self._kept: dict[MachineId, tuple[Address, ...]] = {}  # the addresses that are on disk
        self._saving, self._merging = asyncio.Lock(), asyncio.Lock()
        self._before_joining: Log | None = None
        self._is_joining = False

    async def load(self) -> None:
        """Load the log and the addresses from disk. Raises Damaged("household_damaged")."""
        self.log = await self._store.load()
        self._addresses = dict(await self._store.load_addresses())
        self._kept = dict(self._addresses)
        self._evaluate()

    @property
    def members(self) -> Mapping[MachineId, Member]:
        """Return all machines that are currently admitted, including this machine and one on trial."""
        return self._members

    @property
    def confirmed(self) -> Mapping[MachineId, Member]:
        """Return the members except the machine on trial."""
        return self._confirmed

    @property
    def dismissed(self) -> bool:
        """Return whether this machine was removed from the household."""
        return self.log is not None and self._me.id in removed_machines(self.log)

    @property
    def is_alone(self) -> bool:
        """Return whether there is no household, or this machine has always been its only member."""
        return self.log is None or len(self.log.operations) <= 1

    def lines(self) -> list[str]:
        """Return the encoded operations in sending order. Each follows the operations on which it depends."""
        operations = self.log.operations if self.log else ()
        return [encode(operation).decode("ascii") for operation in operations]

    def require_admin(self) -> None:
        """Raise Refused unless this machine may change the household."""
        member = self._members.get(self._me.id)
        if member is None or Role.ADMIN not in member.roles:
            raise Refused("not_admin")

    async def create_if_missing(self, name: str) -> None:
        """Create a household if there is none."""
        if self.log is None:
            await self._take(new_household(self._me, name))

    async def merge(self, lines: Sequence[str]) -> MergeSummary:
        """Merge the lines that a peer sent. Raises DoesNotFit if the disk is full.

        Messages are merged one at a time. Signatures are verified in a thread to avoid delaying answers.
        """
        async with self._merging:
            before = self.log
            if before is None:
                return MergeSummary()
            merged, n_none = await asyncio.to_thread(_merged, before, lines)
            n_outside = merged.n_outside
            if merged.new and self.log is not before:  # the log changed in the meantime
                if self.log is None:
                    return MergeSummary()
                merged = merge(self.log, merged.new, lambda *_: True, is_fit)
            if merged.new:
                await self._take(merged.log)
            n_false = len(merged.forged) + len(merged.unpinnable) + n_none
            return MergeSummary(merged.new, n_false, n_outside)

    async def remove(self, machine: MachineId, kept: Sequence[OperationId]) -> tuple[Operation, ...]:
        """Sign the removal of `machine`, and return the new operations. Raises Refused.

        Of the `add` operations that `machine` signed, only those in `kept` remain valid. The names and roles that
        it gave to other machines also remain: this machine re-signs them if the log has room.
        """
        log = self._may_change(machine)
        removal = sign_operation(self._me, Remove(log.household, machine, tuple(sorted(set(kept)))))
        confirming = self._confirming(machine)
        if not self._has_room((*confirming, removal)):
            confirming = ()
        await self._change((*confirming, removal), lambda after: machine not in after)
        return (*confirming, removal)

    async def set_roles(self, machine: MachineId, roles: Sequence[Role]) -> tuple[Operation, ...]:
        """Change the roles of `machine`, and return the new operations. Raises Refused.

        The admin role can be granted, but can be revoked only by removing the machine.
        """
        log, member = self._may_change(machine), self._members[machine]
        operations = []
        if Role.ADMIN in roles and Role.ADMIN not in member.roles:
            body = Add(log.household, machine, member.der, member.name, tuple(sorted(roles)))
            operations.append(sign_operation(self._me, body))
        elif Role.ADMIN in member.roles and Role.ADMIN not in roles:
            raise Refused("admin_stays", name=member.name)
        plain = tuple(sorted(set(roles) - {Role.ADMIN}))
        if set(plain) != member.roles - {Role.ADMIN}:
            turn = next_turn(log, machine)
            operations.append(sign_operation(self._me, SetRoles(log.household, machine, turn, plain)))
        new_roles = frozenset(roles)
        return await self._change(operations, lambda after: machine in after and after[machine].roles == new_roles)

    async def rename(self, machine: MachineId, name: str) -> tuple[Operation, ...]:
        """Rename `machine`, and return the new operation. Raises Refused."""
        log = self._may_change(machine)
        new_name = clean_name(name)
        body = Rename(log.household, machine, next_turn(log, machine), new_name)
        return await self._change(
            [sign_operation(self._me, body)], lambda after: machine in after and after[machine].name == new_name
        )

    # the member's side of pairing

    def admit_on_trial(
        self, machine: MachineId, der: bytes, name: str, roles: Sequence[Role], called: Iterable[str] = ()
    ) -> Log:
        """Admit `machine` on trial for its first link, and return the log to send to it. Raises Refused.

        Names must be unique. A number is appended to the newcomer's name if another member has it or if it is in
        `called`, the names currently in use.
        """
        self.require_admin()
        assert self.log is not None
        if machine in removed_machines(self.log):
            raise Refused("removed_needs_reset")
        taken_names = (member.name for key, member in self._members.items() if key != machine)
        free = free_name(name, [*taken_names, *called])
        body = Add(self.log.household, machine, der, free, tuple(sorted(roles)))
        trial = sign_operation(self._me, body)
        if not self._has_room((trial,)):
            raise self._no_room()
        self._trial = trial
        self._evaluate()
        self._changed()
        return Log(self.log.household, (*self.log.operations, self._trial))

    async def confirm(self, machine: MachineId) -> tuple[Operation, ...]:
        """Make the machine on trial a permanent member, now that its link is up. Return the new operation."""
        trial, self._trial = self._trial, None
        if trial is None or trial.body.machine != machine:
            return ()
        return await self._change([trial], lambda after: machine in after)

    def withdraw(self, machine: MachineId) -> None:
        """Drop the machine on trial, which never established a link. Its `add` was sent to no other machine."""
        if self._trial is not None and self._trial.body.machine == machine:
            self._trial = None
            self._evaluate()
            self._changed()

    # the newcomer's side of pairing

    def adopt(self, result: JoinResult) -> Member:
        """Adopt the household of `result` provisionally, and return the member to link to. Raises Refused."""
        log = merge(Log(result.household), result.operations, verify, is_fit).log
        there = members(log)
        host = there.get(result.peer)
        if self._me.id not in there or host is None or Role.ADMIN not in host.roles:
            raise Refused("pairing_odd_household")
        self._before_joining, self.log, self._is_joining = self.log, log, True
        self._evaluate()
        return host

    async def settle(self) -> None:
        """Save the household after `adopt`, once the first link is up."""
        assert self.log is not None
        async with self._saving:
            await self._store.save(self.log)
        self._before_joining, self._is_joining = None, False
        self._changed()

    def revert(self) -> None:
        """Restore the state from before `adopt` after the first link has failed."""
        if self._is_joining:
            self.log, self._before_joining, self._is_joining = self._before_joining, None, False
            self._evaluate()

    # addresses of the other machines

    def addresses(self, machine: MachineId) -> tuple[Address, ...]:
        """Return the addresses at which `machine` was reached, latest first."""
        return self._addresses.get(machine, ())

    async def remember(self, machine: MachineId, address: Address) -> None:
        """Record an address at which `machine` is or was reachable. Raises DoesNotFit if the disk is full."""
        known = self.addresses(machine)
        if known[:1] != (address,):
            older = tuple(other for other in known if other != address)
            self._addresses[machine] = (address, *older)[:ADDRESSES_OF_ONE_MACHINE]
        await self._keep_addresses()

    async def forget_strangers(self) -> None:
        """Forget the addresses of machines that are not members. A failed save is repaired by the next save."""
        self._addresses = {m: a for m, a in self._addresses.items() if m in self._members}
        try:
            await self._keep_addresses()
        except DoesNotFit as error:
            log.warning("the addresses of members cannot be saved: %s", error.reason)

    async def _keep_addresses(self) -> None:
        """Save the addresses if they differ from those on disk. This also repeats an earlier save that failed."""
        async with self._saving:
            now = dict(self._addresses)
            if now != self._kept:
                await self._store.save_addresses(now)
                self._kept = now

    def _may_change(self, machine: MachineId) -> Log:
        """Return the log if this machine may add an operation about `machine`. Raises Refused."""
        self.require_admin()
        if self.log is None or machine not in self._members:
            raise Refused("machine_unknown", name=machine[:16])
        return self.log

    def _confirming(self, leaving: MachineId) -> tuple[Operation, ...]:
        """Return new operations by this machine that replace the names and roles signed by `leaving`."""
        assert self.log is not None
        bodies: list[SetRoles | Rename] = []
        operations = self.log.operations
        lines = (*effective_lines(operations, SetRoles).values(), *effective_lines(operations, Rename).values())
        for line in lines:
            body = line.body
            stays = body.machine != leaving and body.machine in self._members
            if line.signer == leaving and stays and isinstance(body, SetRoles | Rename):
                bodies.append(replace(body, turn=next_turn(self.log, body.machine, leaving)))
        return tuple(sign_operation(self._me, body) for body in bodies)

    def _has_room(self, operations: Sequence[Operation]) -> bool:
        """Return whether the log has room for these operations without displacing operations that are still in
        force."""
        assert self.log is not None
        after = merge(self.log, operations, verify, is_fit).log
        remaining = set(after.operations)
        lost = set(self.log.operations) - remaining
        return remaining.issuperset(operations) and all(is_superseded(operation, after) for operation in lost)

    def _no_room(self) -> Refused:
        """Return the error for a full log. Part of the log is reserved for the first machine; the others share the
        remainder."""
        assert self.log is not None
        first = founder(self.log)
        if first is None or first == self._me.id or first not in self._confirmed:
            return Refused("household_full")
        return Refused("household_full_here", name=self._confirmed[first].name)

    async def _change(
        self, operations: Sequence[Operation], is_done: Callable[[Mapping[MachineId, Member]], bool]
    ) -> tuple[Operation, ...]:
        """Apply a change made by this machine. If it cannot be saved, it is undone and can be tried again. Raises
        DoesNotFit or Refused.

        is_done: returns whether the change took effect, given the resulting members. A change without effect is
            refused.
        """
        assert self.log is not None
        if not self._has_room(operations):
            raise self._no_room()
        before = self.log
        merged = merge(before, operations, verify, is_fit)
        if not is_done(members(merged.log)):
            raise Refused("household_outranked")
        after = self.log = merged.log
        self._evaluate()
        try:
            async with self._saving:
                await self._store.save(self.log)
        except DoesNotFit:
            if self.log is after:  # otherwise a later change already builds on it
                self.log = before
                self._evaluate()
            raise
        finally:
            self._changed()  # not earlier, so that no link is cut to a machine that stays after all
        return merged.new

    async def _take(self, log: Log) -> None:
        """Replace the log in memory, then on disk. This order ensures that no concurrent change is lost."""
        self.log = log
        self._evaluate()
        self._changed()
        if not self._is_joining:
            async with self._saving:
                await self._store.save(self.log)

    def _evaluate(self) -> None:
        if self.log is None:
            self._confirmed = self._members = {}
            return
        self._confirmed = self._members = members(self.log)
        if self._trial is not None:
            log = Log(self.log.household, (*self.log.operations, self._trial))
            self._members = members(log)


def _merged(log: Log, lines: Sequence[str]) -> tuple[MergeResult, int]:
    """Merge lines into the log. Return the result and the number of invalid lines. Runs in a thread."""
    operations = decode_lines(lines)
    return merge(log, operations, verify, is_fit), len(lines) - len(operations)
