"""The stored state of the household: the signed log, and the addresses where the others were last met."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from app.core.errors import BadInput, Damaged, DoesNotFit
from app.core.household.membership import Log, merge
from app.core.household.operations import (
    FIRST_ROLES,
    NO_HOUSEHOLD,
    Add,
    BadOperation,
    Body,
    HouseholdId,
    Operation,
    decode,
    encode,
    household_of,
    signed_bytes,
)
from app.core.ids import MachineId, clean_name, machine_id
from app.core.reasons import os_cause
from app.decoding import decode as decode_json
from app.network.identity import HOUSEHOLD_NAME, Identity, Write, is_fit, verify
from app.network.sockets import Address

ADDRESSES_OF_ONE_MACHINE = 8
Addresses = Mapping[MachineId, tuple[Address, ...]]

log = logging.getLogger(__name__)


class _KeptLog(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of the household."""

    household: str
    operations: list[str]


class LogStore:
    """Two files in `directory`, each replaced whole."""

    def __init__(self, directory: Path, write: Write) -> None:
        self._write_file = write
        self._log = directory / HOUSEHOLD_NAME
        self._addresses = directory / "addresses.json"

    async def load(self) -> Log | None:
        """Return the log, each signature checked again, or None. Raises Damaged("household_damaged")."""
        return await asyncio.to_thread(self._load)

    async def save(self, log: Log) -> None:
        """Keep `log`. Raises DoesNotFit("household_unsaved") when the disk does not take it."""
        lines = [encode(operation).decode("ascii") for operation in log.operations]
        content = json.dumps({"household": log.household, "operations": lines}, indent=1)
        await self._write(self._log, content)

    async def forget(self) -> None:
        """Delete the household's files."""
        for path in (self._log, self._addresses):
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def load_addresses(self) -> Addresses:
        """Return the addresses where machines were met, latest first. They are hints: a broken file is no loss."""
        try:
            content = await asyncio.to_thread(self._addresses.read_bytes)
            return {
                machine_id(machine): tuple(Address.parse(text) for text in places)
                for machine, places in decode_json(content, dict[str, list[str]]).items()
            }
        except (OSError, ValueError, RecursionError, BadInput):
            return {}

    async def save_addresses(self, addresses: Addresses) -> None:
        """Keep the addresses. Raises DoesNotFit as `save` does."""
        fields = {
            machine: [str(place) for place in places[:ADDRESSES_OF_ONE_MACHINE]]
            for machine, places in addresses.items()
        }
        await self._write(self._addresses, json.dumps(fields, indent=1))

    def _load(self) -> Log | None:
        """Read and check the log.

        Operations that today's rules forbid are dropped, as earlier versions accepted them. Damage is never dropped:
        the damaged line may be a removal.
        """
        try:
            kept = decode_json(self._log.read_bytes(), _KeptLog)
            household = HouseholdId(machine_id(kept.household))
            operations = [decode(line) for line in kept.operations]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise Damaged("household_damaged", path=str(self._log)) from error
        merged = merge(Log(household), operations, verify, is_fit)
        if merged.false or merged.unfounded or not merged.log.operations:
            raise Damaged("household_damaged", path=str(self._log))
        if left_out := len(set(operations)) - len(merged.log.operations):
            log.warning("%d lines of the household were left out: they are of no use", left_out)
        return merged.log

    async def _write(self, path: Path, content: str) -> None:
        try:
            await asyncio.to_thread(self._write_file, path, content.encode("utf-8"))
        except OSError as error:
            raise DoesNotFit("household_unsaved", path=str(path), why=os_cause(error)) from error


def signed(identity: Identity, body: Body) -> Operation:
    """Return `body` as an operation signed by this machine."""
    return Operation(body, identity.id, identity.sign(signed_bytes(body, identity.id)))


def new_household(identity: Identity, name: str) -> Log:
    """Return a new household whose first machine is this one."""
    body = Add(NO_HOUSEHOLD, identity.id, identity.der, clean_name(name), FIRST_ROLES)
    first = signed(identity, body)
    return Log(household_of(first), (first,))


def readable(lines: Iterable[str]) -> list[Operation]:
    """Return the operations that a peer sent, without the lines that are none."""
    operations = []
    for line in lines:
        try:
            operations.append(decode(line))
        except BadOperation:
            continue
    return operations
