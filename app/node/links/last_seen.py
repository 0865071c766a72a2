"""When each machine of the household was linked last: kept, so that a restart does not forget it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from app.core.household.household import Came, Event, Left, Member, Removed
from app.core.ids import MachineId
from app.machine.json_state import read_or
from app.machine.paths import write_atomically

log = logging.getLogger(__name__)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seen: dict[MachineId, float] = {}  # Unix time


class LastSeen:
    """Of all members. A link that came is written down as well: who is killed hears of no end."""

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        self._file, self._now = file, now
        self._seen = dict(read_or(file, _File, "when machines were seen last").seen)
        self._turn = threading.Lock()  # what is said last is written last

    def told(self, event: Event) -> Event:
        """The event, of a member with when it was seen last; what it says of a link is kept."""
        match event:
            case Member(id):
                return replace(event, seen_at=self._seen.get(id))
            case Came(id, address) if address is not None:
                self._keep(id, self._now())
            case Left(id) if id in self._seen:  # else it was removed, and its link ends for that
                self._keep(id, event.at or self._now())
            case Removed(id) if self._seen.pop(id, None) is not None:
                self._save_soon()
            case _:
                pass
        return event

    def _keep(self, machine: MachineId, at: float) -> None:
        self._seen[machine] = at
        self._save_soon()

    def _save_soon(self) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._save)

    def _save(self) -> None:
        with self._turn:
            try:
                write_atomically(self._file, msgspec.json.encode(_File(dict(self._seen))))
            except OSError as error:
                log.warning("when machines were seen last cannot be kept: %s", error)
