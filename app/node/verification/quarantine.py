"""The quarantine. A machine that computed wrong results runs no part of a model until the user releases it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from app.api.responses import UseAgainResponse
from app.api.snapshot import MachineRef
from app.catalog.transfers.file_transfer import run_to_completion
from app.core.errors import BadInput, Reason
from app.core.household.household import Machine
from app.core.ids import MachineId
from app.machine.json_state import put_aside, read_json
from app.machine.paths import write_atomically

log = logging.getLogger(__name__)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    since: dict[MachineId, float] = {}  # Unix time


class Quarantine:
    """The machines that this host has quarantined.

    note: adds an event to the journal.
    changed: called when the snapshot may have changed.
    """

    def __init__(
        self,
        file: Path,
        note: Callable[[Reason], None] = lambda _: None,
        changed: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._file, self._note, self._changed, self._now = file, note, changed, now
        self._turn = asyncio.Lock()  # keeps writes in the order of the changes
        self._since = dict(self._read().since)

    def _read(self) -> _File:
        """Return the saved quarantine. If the file is damaged, set it aside and report that the quarantined
        machines are in use again.
        """
        try:
            return read_json(self._file, _File)
        except FileNotFoundError:
            return _File()
        except (OSError, ValueError) as error:
            log.warning("the quarantine could not be read: %s", error)
            self._note(Reason("log_machine_doubts_lost", {"path": str(put_aside(self._file))}))
            return _File()

    def __contains__(self, machine: object) -> bool:
        return machine in self._since

    def reasons(
        self, names: Mapping[MachineId, Machine], other_reasons: Mapping[MachineId, Reason]
    ) -> dict[MachineId, Reason]:
        """Return `other_reasons`, with the reason of each quarantined online machine replaced by the quarantine."""
        own = {
            key: Reason("machine_doubted", {"machine": names[key].name})
            for key in self._since
            if key in names and names[key].online
        }
        return {**other_reasons, **own}

    async def add(self, machine: MachineId, name: str) -> None:
        """Quarantine a machine that computed wrong results."""
        if machine in self._since:
            return
        log.warning("%s computed wrong results and is now in quarantine", name)
        self._since[machine] = self._now()
        self._note(Reason("log_machine_doubted", {"machine": name}))
        await self._kept()

    def note_inconclusive(self, name: str) -> None:
        """Record that a check was inconclusive: a third machine agreed with the lender or with neither side."""
        self._note(Reason("log_machine_unclear", {"machine": name}))

    async def release(self, machine: Machine) -> UseAgainResponse:
        """Release a machine at the user's request. Raises BadInput if it is not in quarantine."""
        if machine.id not in self._since:
            raise BadInput("machine_not_doubted", machine=machine.name)
        del self._since[machine.id]
        self._note(Reason("log_machine_used_again", {"machine": machine.name}))
        await self._kept()
        return UseAgainResponse(MachineRef(machine.id, machine.name))

    def keep_only(self, members: Mapping[MachineId, object]) -> None:
        """Forget machines that left the household. Their IDs are never used again."""
        self._since = {key: at for key, at in self._since.items() if key in members}

    async def _kept(self) -> None:
        self._changed()
        try:
            async with self._turn:
                content = msgspec.json.encode(_File(self._since))
                await run_to_completion(partial(write_atomically, self._file, content))
        except OSError as error:
            log.warning("the quarantine could not be saved: %s", error)
