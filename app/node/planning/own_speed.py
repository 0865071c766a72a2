"""The speed of this machine with a model: from the cache, or measured now, one trial at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from app.core.errors import Busy
from app.core.model_shape import ModelShape
from app.core.planner.speed_estimates import Speed
from app.inference.worker.layer_benchmark import Gauge, Report, measure, silent
from app.machine.hardware import devices
from app.machine.hardware.cores import Threads
from app.machine.hardware.devices import other_programs_share
from app.node.hardware import Hardware
from app.node.planning.speed_cache import SpeedCache, key_of
from app.node.verification.spare_memory import SpareMemory

log = logging.getLogger(__name__)


WHILE_S = 3600.0
OWN_SHARE = 0.5  # of the free memory, for a trial of seconds
DISTURBED = 0.2  # of the processor, by other programs: what is measured then says little
SOON_S = 60.0  # after which it may be doubted again


class Cooldown:
    """The last time each key was done."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._done_s: dict[Hashable, float] = {}

    def may(self, key: Hashable, within_s: float = WHILE_S) -> bool:
        """Return whether the key was not done for this long."""
        return self._now() - self._done_s.get(key, -WHILE_S) >= within_s

    def done(self, key: Hashable) -> None:
        """Note that the key is done now."""
        self._done_s = {key_done: at for key_done, at in self._done_s.items() if not self.may(key_done)}
        self._done_s[key] = self._now()


class Borrowed(Protocol):
    """The use of this machine by others."""

    @property
    def used_bytes(self) -> int: ...
    def busy(self) -> bool: ...


class Answering(Protocol):
    """The answers of this machine's own user."""

    @property
    def answering(self) -> bool: ...


class Terms(Protocol):
    """The owner's rules."""

    check_room: SpareMemory

    def require(self) -> None: ...
    def lent_bytes(self) -> int: ...
    def threads(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Here:
    """The work on this machine that a trial could disturb, read again before each of its steps."""

    hardware: Hardware
    borrowed: Borrowed
    own: Answering
    terms: Terms

    def busy(self) -> bool:
        """Return whether an answer is computed here for anyone, or layers are being loaded for others."""
        return self.own.answering or self.borrowed.busy()

    def lent_threads(self) -> Threads:
        """Return the threads for the layers of others."""
        return self.hardware.threads.at_most(self.terms.threads())

    def lent_bytes(self) -> int:
        """Return the bytes a host may still use. Raises Refused when nothing new may begin."""
        self.terms.require()
        return max(0, self.terms.lent_bytes() - self.borrowed.used_bytes)


class OwnSpeed:
    """The trials of this machine. `root` holds the cache and, during a trial, a folder for its files."""

    def __init__(self, here: Here, root: Path) -> None:
        self._here, self.root = here, root
        self._book = SpeedCache(root / "speeds.json")
        self._rarely = Cooldown()  # is it doubted
        self._turn = asyncio.Lock()
        self._rested_at = 0.0

    async def known(self, shape: ModelShape, batch_rows: int) -> Speed | None:
        """Return the last speed measured, even where `for_user` would measure again: it is better than nothing."""
        setup = await self._here.hardware.setup(batch_rows)
        return self._book.last(key_of(setup, shape, head=True))

    async def for_user(self, shape: ModelShape, batch_rows: int, report: Report = silent) -> Speed:
        """Return the speed with the output matrix, for this machine's own user; waits for a trial under way.

        Raises the errors of `measure`, Busy among them.
        """
        setup = await self._here.hardware.setup(batch_rows)
        key = key_of(setup, shape, head=True)
        if known := self._book.get(key):
            return known
        async with self._turn:
            if known := self._book.get(key):
                return known
            free = int(devices.memory().free_bytes * OWN_SHARE)
            gauge = Gauge(self._here.hardware.threads, batch_rows, free, head=True, low_priority=False)
            return await self._tried(key, shape, gauge, self._here.busy, report)

    async def for_member(self, shape: ModelShape, batch_rows: int, *, again: bool) -> Speed:
        """Return the speed without the output matrix, within what is lent; at most half of the time goes to members'
        trials.

        again: the known speed is doubted, which is rarely heeded. Raises the errors of `measure`, and Busy while any
        trial runs or rests.
        """
        setup = await self._here.hardware.setup(batch_rows)
        threads = self._here.lent_threads()
        setup = replace(setup, threads=threads.most)
        key = key_of(setup, shape, head=False)
        known = self._book.get(key)
        if known and not (again and self._may_doubt(key)):
            return known
        if self._turn.locked() or time.monotonic() < self._rested_at:
            raise Busy("speed_busy")
        async with self._turn:
            began = time.monotonic()
            gauge = Gauge(threads, batch_rows, self._here.lent_bytes(), head=False)
            try:
                speed = await self._tried(key, shape, gauge, self._unwelcome, silent)
                if again:
                    self._rarely.done(key)
                return speed
            finally:
                now = time.monotonic()
                self._rested_at = now + (now - began)

    async def doubt(self, shape: ModelShape, batch_rows: int) -> bool:
        """Doubt the known speed: the next question measures again. Return False if it was measured not long ago."""
        setup = await self._here.hardware.setup(batch_rows)
        key = key_of(setup, shape, head=True)
        if not self._may_doubt(key):
            return False
        self._rarely.done(key)
        await asyncio.to_thread(self._book.doubt, key)
        return True

    def _may_doubt(self, key: str) -> bool:
        """Return whether the speed may be doubted again: a doubt confirmed once is settled, unless other programs
        disturbed the trial."""
        return self._rarely.may(key, SOON_S if self._book.was_disturbed(key) else WHILE_S)

    def _unwelcome(self) -> bool:
        """Return whether a trial for another machine must end: work came, or the owner wants the machine."""
        self._here.lent_bytes()
        return self._here.busy()

    async def _tried(
        self, key: str, shape: ModelShape, gauge: Gauge, busy: Callable[[], bool], report: Report
    ) -> Speed:
        if busy():
            raise Busy("speed_busy")
        other_load = await asyncio.to_thread(other_programs_share)
        began = time.monotonic()
        folder = self.root / "measuring"
        async with self._here.terms.check_room.wanted():  # no check computes beside it
            speed = await measure(shape, folder, gauge, busy=busy, report=report)
        seconds = time.monotonic() - began
        log.info(
            "%s layers measured in %.1f s: %s; others used %.0f %%",
            shape.architecture,
            seconds,
            speed,
            100 * other_load,
        )
        await asyncio.to_thread(self._book.keep, key, speed, disturbed=other_load > DISTURBED)
        return speed
