"""The signed operations of the household log, and their only valid encoding (SAFETY.md 4)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, assert_never

import msgspec

from app.core.ids import MAX_NAME_CHARACTERS, MachineId, machine_id

HouseholdId = NewType("HouseholdId", str)  # 64 hex digits: the hash of what the founder signed
OperationId = NewType("OperationId", str)  # 64 hex digits: hash of the operation's bytes

CONTEXT = b"poolhouse member 1\0"
MAX_OPERATION_BYTES = 4 << 10
MAX_DER_BYTES = 2 << 10
SIGNATURE_BYTES = 64
NO_HOUSEHOLD = HouseholdId("")  # used by the first operation, which cannot contain its own hash


class Role(StrEnum):
    """A role that a machine may have in the household."""

    ADMIN = "admin"  # signs operations, opens pairing windows
    HOST = "host"  # opens pipelines on lenders
    LENDER = "lender"  # serves stages
    GUEST = "guest"  # only uses the Chat API of hosts


FIRST_ROLES = (Role.ADMIN, Role.HOST, Role.LENDER)
MAX_TURN = 1 << 53  # the largest integer that every JSON parser reads exactly


class BadOperation(ValueError):
    """An invalid operation. It is dropped and never relayed."""


@dataclass(frozen=True, slots=True)
class Add:
    """The operation that adds `machine` to the household. `der` is its certificate."""

    household: HouseholdId
    machine: MachineId
    der: bytes
    name: str
    roles: tuple[Role, ...]


@dataclass(frozen=True, slots=True)
class Remove:
    """The operation that removes `machine` forever.

    Of the operations signed by that machine, only those in `kept` remain valid.
    """

    household: HouseholdId
    machine: MachineId
    kept: tuple[OperationId, ...]


@dataclass(frozen=True, slots=True)
class SetRoles:
    """The operation that sets the roles of `machine`. If there are several, the one with the highest turn applies.

    It never contains ADMIN: only an `add` grants that role, and only a `remove` revokes it. The set of signers
    therefore does not depend on the order in which lines arrive.
    """

    household: HouseholdId
    machine: MachineId
    turn: int
    roles: tuple[Role, ...]


@dataclass(frozen=True, slots=True)
class Rename:
    """The operation that renames `machine`. If there are several, the one with the highest turn applies."""

    household: HouseholdId
    machine: MachineId
    turn: int
    name: str


Body = Add | Remove | SetRoles | Rename


@dataclass(frozen=True, slots=True)
class Operation:
    """A signed operation in the log."""

    body: Body
    signer: MachineId
    signature: bytes

    @property
    def id(self) -> OperationId:
        """Return the hash that identifies the operation."""
        return OperationId(hashlib.sha256(encode(self)).hexdigest())


def signed_bytes(body: Body, signer: MachineId) -> bytes:
    """Return the bytes that the operation's signature covers."""
    return CONTEXT + _canonical(_fields(body) | {"signer": signer})


def encode(operation: Operation) -> bytes:
    """Return the canonical form of an operation: ASCII JSON with sorted keys and no spaces."""
    fields = _fields(operation.body) | {"signer": operation.signer, "signature": _base64(operation.signature)}
    return _canonical(fields)


def decode(text: bytes | str) -> Operation:
    """Return the operation that `encode` encoded as `text`. Raises BadOperation for any other text."""
    raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
    if len(raw) > MAX_OPERATION_BYTES:
        raise BadOperation("longer than 4 KiB")
    try:
        operation = _parsed(_DECODER.decode(raw))
    except (ValueError, RecursionError) as error:  # every error of msgspec is a ValueError
        raise BadOperation("not an operation") from error
    if encode(operation) != raw:  # with two encodings, one operation would become two
        raise BadOperation("not canonical")
    return operation


def household_of(first: Operation) -> HouseholdId:
    """Return the id of the household founded by `first`: the hash of the bytes that the founder signed."""
    return HouseholdId(hashlib.sha256(signed_bytes(first.body, first.signer)).hexdigest())


def _fields(body: Body) -> dict[str, object]:
    own: dict[str, object]
    match body:
        case Add(der=der, name=name, roles=roles):
            own = {"op": "add", "der": _base64(der), "name": name, "roles": [*map(str, roles)]}
        case Remove(kept=kept):
            own = {"op": "remove", "kept": list(kept)}
        case SetRoles(turn=turn, roles=roles):
            own = {"op": "roles", "turn": turn, "roles": [*map(str, roles)]}
        case Rename(turn=turn, name=name):
            own = {"op": "rename", "turn": turn, "name": name}
        case _:
            assert_never(body)
    return {"household": body.household, "machine": body.machine, **own}


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", kw_only=True):
    """The JSON form of an operation. `_parsed` validates its values."""

    household: str
    machine: str
    signer: str
    signature: str


class _AddLine(_Line, frozen=True, tag="add"):
    der: str
    name: str
    roles: list[Role]


class _RemoveLine(_Line, frozen=True, tag="remove"):
    kept: list[str]


class _RolesLine(_Line, frozen=True, tag="roles"):
    turn: int
    roles: list[Role]


class _RenameLine(_Line, frozen=True, tag="rename"):
    turn: int
    name: str


_DECODER = msgspec.json.Decoder(_AddLine | _RemoveLine | _RolesLine | _RenameLine)


def _parsed(line: _AddLine | _RemoveLine | _RolesLine | _RenameLine) -> Operation:
    """Return the operation of a decoded line. Raises ValueError for an invalid value."""
    body: Body
    household, machine = _household(line.household), machine_id(line.machine)
    if not household and not isinstance(line, _AddLine):
        raise ValueError("only the first line names no household")
    match line:
        case _AddLine():
            body = _parsed_add(line, household, machine)
        case _RemoveLine():
            body = Remove(household, machine, _parsed_kept(line.kept))
        case _RolesLine():
            roles = _parsed_roles(line.roles)
            if Role.ADMIN in roles:
                raise ValueError("the right to sign comes with an add")
            body = SetRoles(household, machine, _parsed_turn(line.turn), roles)
        case _RenameLine():
            body = Rename(household, machine, _parsed_turn(line.turn), _parsed_name(line.name))
        case _:
            assert_never(line)
    signature = _unbase64(line.signature)
    if len(signature) != SIGNATURE_BYTES:
        raise ValueError("an Ed25519 signature has 64 bytes")
    return Operation(body, machine_id(line.signer), signature)


def _parsed_add(line: _AddLine, household: HouseholdId, machine: MachineId) -> Add:
    der, name = _unbase64(line.der), _parsed_name(line.name)
    if len(der) > MAX_DER_BYTES or hashlib.sha256(der).hexdigest() != machine:
        raise ValueError("the id is the hash of the certificate")
    roles = _parsed_roles(line.roles)
    if not roles:
        raise ValueError("whoever is added may do something")
    return Add(household, machine, der, name, roles)


def _parsed_name(name: str) -> str:
    """Check the length of a name and return it.

    Names are cleaned only when they are displayed, because the set of control characters depends on the Unicode
    version.
    """
    if not 0 < len(name) <= MAX_NAME_CHARACTERS:
        raise ValueError("a name that is too long")
    return name


def _parsed_roles(roles: list[Role]) -> tuple[Role, ...]:
    if roles != sorted(set(roles)):
        raise ValueError("roles are a sorted list without repeats")
    return tuple(roles)


def _parsed_turn(turn: int) -> int:
    if not 0 < turn <= MAX_TURN:
        raise ValueError("a turn is a whole number")
    return turn


def _parsed_kept(kept: list[str]) -> tuple[OperationId, ...]:
    if kept != sorted(set(kept)):
        raise ValueError("kept is a sorted list without repeats")
    # ids of operations have the same form as those of machines
    return tuple(OperationId(machine_id(item)) for item in kept)


def _household(text: str) -> HouseholdId:
    return HouseholdId(machine_id(text)) if text else NO_HOUSEHOLD


def _canonical(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
