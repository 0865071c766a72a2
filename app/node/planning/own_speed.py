"""The speed of this machine with a model: from the cache, or measured now, one trial at a time.

A speed depends on the engine's build, the hardware and the shape of the model's layers.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from app.core.errors import Busy
from app.core.model import ModelShape
from app.core.planner.speed_estimates import Speed
from app.inference.worker.layer_benchmark import BenchmarkSettings, Report, measure, report_nothing
from app.machine.hardware import devices, engines
from app.machine.hardware.cores import Threads
from app.machine.hardware.devices import other_programs_share
from app.machine.hardware.engines import Engine
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically
from app.node.verification.spare_memory import SpareMemory
from backends.contract import LLAMACPP

log = logging.getLogger(__name__)

FORMAT = 4  # increased when the measurement itself changes
MOST_ENTRIES = 256
OLD_AFTER_S = 14 * 24 * 3600.0  # since drivers, cooling and other programs change
OLD_DISTURBED_S = 600.0  # measured while other programs were busy, which may have ended since
WHILE_S = 3600.0
OWN_SHARE = 0.5  # of the free memory, for a trial that takes seconds
DISTURBED = 0.2  # share of the processor used by other programs that makes a measurement unreliable
SOON_S = 60.0  # after which a disturbed measurement may be doubted again
MAX_DEVICE_TEXT = 200  # limit of other machines

Key = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
Seconds = Annotated[float, Meta(ge=0, le=1e4)]
SomeSeconds = Annotated[float, Meta(gt=0, le=1e4)]


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A Speed with bounds for each number."""

    measured_at: Annotated[float, Meta(ge=0)]  # seconds since 1970
    layer_s: SomeSeconds
    layer_row_s: Seconds
    position_s: Seconds
    chunk_s: SomeSeconds
    chunk_position_s: Seconds
    step_s: Seconds
    head_s: Seconds
    head_row_s: Seconds
    disturbed: bool = False  # other programs used the processor

    def speed(self) -> Speed:
        return Speed(
            self.layer_s,
            self.layer_row_s,
            self.position_s,
            self.chunk_s,
            self.chunk_position_s,
            self.step_s,
            self.head_s,
            self.head_row_s,
        )


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int = 0
    entries: Annotated[dict[Key, _Kept], Meta(max_length=MOST_ENTRIES)] = {}


@dataclass(frozen=True, slots=True)
class Setup:
    """The facts on which a speed depends besides the model."""

    engine: str  # build and features, as in app/machine/hardware/engines.py
    device: str
    threads: int
    batch_rows: int


def key_of(setup: Setup, shape: ModelShape, *, head: bool) -> str:
    """Return the key of a measurement: 64 hex digits that change with anything the speed depends on."""
    facts = (FORMAT, setup.engine, setup.device, setup.threads, setup.batch_rows, head, shape)
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()


class Hardware:
    """A one-line description of the hardware, and the setup that a measured speed depends on."""

    def __init__(self, threads: Threads, changed: Callable[[], None]) -> None:
        self.threads, self._changed = threads, changed
        self.processor = devices.processor_name()
        self._engines: list[Engine] = []
        self._asking = asyncio.Lock()

    @property
    def device(self) -> str:
        """The processor's name, with the devices of the engines once they have been probed."""
        return engines.describe(self.processor, self._engines)[:MAX_DEVICE_TEXT]

    @property
    def announced(self) -> tuple[str, tuple[str, ...]]:
        """The device and the engine that runs layers, as reported to other machines. The engine's version is included
        once it has been probed."""
        known = [engine for engine in self._engines if engine.name == LLAMACPP and not engine.missing]
        version = known[0].version[:40] if known else ""
        return self.device, (f"{LLAMACPP} {version}".strip(),)

    async def run(self) -> None:
        """Probe the engines. A failure is logged, and the next caller that needs the result probes again."""
        for engine in await self.engines():
            if engine.missing:
                log.warning("the engine %s cannot be used: %s", engine.name, engine.missing)
        self._changed()

    async def engines(self) -> list[Engine]:
        """Return all engines, probed once for all callers."""
        async with self._asking:
            if not any(not engine.missing for engine in self._engines):
                self._engines = await engines.probe_all()
            return self._engines

    async def setup(self, batch_rows: int) -> Setup:
        """Return the setup that a speed measured now is valid for."""
        build = "".join(engine.build for engine in await self.engines() if engine.name == LLAMACPP)
        return Setup(build, self.processor, self.threads.most, batch_rows)


class SpeedCache:
    """The measured speeds, in a small JSON file. Unreadable or old entries count as never measured."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self._path, self._now = path, now
        self._entries = self._read()

    def get(self, key: str) -> Speed | None:
        """Return the measured speed, unless it is too old."""
        kept = self._entries.get(key)
        if kept is None:
            return None
        most_s = OLD_DISTURBED_S if kept.disturbed else OLD_AFTER_S
        if not -most_s < self._now() - kept.measured_at < most_s:
            return None
        return kept.speed()

    def was_disturbed(self, key: str) -> bool:
        """Return whether the known speed was measured while other programs used the processor."""
        return key in self._entries and self._entries[key].disturbed

    def last(self, key: str) -> Speed | None:
        """Return the last measured speed, even if it is old or doubtful."""
        kept = self._entries.get(key)
        return kept.speed() if kept else None

    def keep(self, key: str, speed: Speed, *, disturbed: bool = False) -> None:
        """Save a speed. If the disk refuses it, the only cost is another measurement."""
        self._entries.pop(key, None)
        names = set(_Kept.__struct_fields__) - {"measured_at", "disturbed"}
        fields = {name: getattr(speed, name) for name in names}
        self._entries[key] = _Kept(measured_at=self._now(), disturbed=disturbed, **fields)
        for oldest in list(self._entries)[:-MOST_ENTRIES]:
            del self._entries[oldest]
        self._write()

    def doubt(self, key: str) -> None:
        """Mark a speed as outdated."""
        kept = self._entries.get(key)
        if kept is not None and kept.measured_at:
            self._entries[key] = msgspec.structs.replace(kept, measured_at=0)
            self._write()

    def _read(self) -> dict[str, _Kept]:
        stored = read_json_or_default(self._path, _File, "measured speeds")
        return dict(stored.entries) if stored.format == FORMAT else {}

    def _write(self) -> None:
        try:
            write_atomically(self._path, msgspec.json.encode(_File(FORMAT, self._entries)))
        except OSError as error:
            log.warning("speeds could not be kept in %s: %s", self._path, error)


class Cooldown:
    """The times at which actions were last done, by key."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._done_s: dict[Hashable, float] = {}

    def may(self, key: Hashable, within_s: float = WHILE_S) -> bool:
        """Return whether the action was not done within this time."""
        return self._now() - self._done_s.get(key, -WHILE_S) >= within_s

    def done(self, key: Hashable) -> None:
        """Record that the action was done now."""
        self._done_s = {key_done: at for key_done, at in self._done_s.items() if not self.may(key_done)}
        self._done_s[key] = self._now()


class LentWork(Protocol):
    """The use of this machine by others."""

    @property
    def used_bytes(self) -> int: ...
    def busy(self) -> bool: ...


class Answering(Protocol):
    """The answers of this machine's own user."""

    @property
    def answering(self) -> bool: ...


class LendingTerms(Protocol):
    """The owner's lending rules."""

    spare_memory: SpareMemory

    def require(self) -> None: ...
    def lent_bytes(self) -> int: ...
    def threads(self) -> int: ...


@dataclass(frozen=True, slots=True)
class LocalWork:
    """The work on this machine that a trial could disturb, checked before each step of the trial."""

    hardware: Hardware
    borrowed: LentWork
    own: Answering
    terms: LendingTerms

    def busy(self) -> bool:
        """Return whether an answer is being computed here for anyone, or layers are being loaded for others."""
        return self.own.answering or self.borrowed.busy()

    def lent_threads(self) -> Threads:
        """Return the threads for others' layers."""
        return self.hardware.threads.at_most(self.terms.threads())

    def lent_bytes(self) -> int:
        """Return the bytes that a host may still use. Raises Refused if nothing new may begin."""
        self.terms.require()
        return max(0, self.terms.lent_bytes() - self.borrowed.used_bytes)


class OwnSpeed:
    """The trials of this machine. `root` contains the cache and, during a trial, a folder for its files."""

    def __init__(self, here: LocalWork, root: Path) -> None:
        self._here, self.root = here, root
        self._cache = SpeedCache(root / "speeds.json")
        self._cooldown = Cooldown()  # of doubts
        self._turn = asyncio.Lock()
        self._rested_at = 0.0

    async def known(self, shape: ModelShape, batch_rows: int) -> Speed | None:
        """Return the last measured speed, even if `for_user` would measure it again. It is better than none."""
        setup = await self._here.hardware.setup(batch_rows)
        return self._cache.last(key_of(setup, shape, head=True))

    async def for_user(self, shape: ModelShape, batch_rows: int, report: Report = report_nothing) -> Speed:
        """Return the speed including the output matrix, for this machine's own user. Waits for a trial under way.

        Raises the errors of `measure`, including Busy.
        """
        setup = await self._here.hardware.setup(batch_rows)
        key = key_of(setup, shape, head=True)
        if known := self._cache.get(key):
            return known
        async with self._turn:
            if known := self._cache.get(key):
                return known
            free = int(devices.memory().free_bytes * OWN_SHARE)
            gauge = BenchmarkSettings(self._here.hardware.threads, batch_rows, free, head=True, low_priority=False)
            return await self._trial(key, shape, gauge, self._here.busy, report)

    async def for_member(self, shape: ModelShape, batch_rows: int, *, again: bool) -> Speed:
        """Return the speed without the output matrix, within the lent resources. Members' trials take at most half of
        the time.

        again: the known speed is doubted; it is measured again only if it was not lately. Raises the errors of
        `measure`, and Busy while a trial is running or the machine rests from one.
        """
        setup = await self._here.hardware.setup(batch_rows)
        threads = self._here.lent_threads()
        setup = replace(setup, threads=threads.most)
        key = key_of(setup, shape, head=False)
        known = self._cache.get(key)
        if known and not (again and self._may_doubt(key)):
            return known
        if self._turn.locked() or time.monotonic() < self._rested_at:
            raise Busy("speed_busy")
        async with self._turn:
            began = time.monotonic()
            gauge = BenchmarkSettings(threads, batch_rows, self._here.lent_bytes(), head=False)
            try:
                speed = await self._trial(key, shape, gauge, self._must_stop, report_nothing)
                if again:
                    self._cooldown.done(key)
                return speed
            finally:
                now = time.monotonic()
                self._rested_at = now + (now - began)

    async def doubt(self, shape: ModelShape, batch_rows: int) -> bool:
        """Mark the known speed as outdated, so that the next request measures it. Return False if it was doubted
        recently."""
        setup = await self._here.hardware.setup(batch_rows)
        key = key_of(setup, shape, head=True)
        if not self._may_doubt(key):
            return False
        self._cooldown.done(key)
        await asyncio.to_thread(self._cache.doubt, key)
        return True

    def _may_doubt(self, key: str) -> bool:
        """Return whether the speed may be doubted again. A measurement that was repeated counts as settled unless
        other programs disturbed it."""
        return self._cooldown.may(key, SOON_S if self._cache.was_disturbed(key) else WHILE_S)

    def _must_stop(self) -> bool:
        """Return whether a trial for another machine must end because of other work. Raises Refused if lending
        stopped."""
        self._here.lent_bytes()
        return self._here.busy()

    async def _trial(
        self, key: str, shape: ModelShape, gauge: BenchmarkSettings, busy: Callable[[], bool], report: Report
    ) -> Speed:
        if busy():
            raise Busy("speed_busy")
        other_load = await asyncio.to_thread(other_programs_share)
        began = time.monotonic()
        folder = self.root / "measuring"
        async with self._here.terms.spare_memory.wanted():  # no check may run at the same time
            speed = await measure(shape, folder, gauge, busy=busy, report=report)
        seconds = time.monotonic() - began
        log.info(
            "%s layers measured in %.1f s: %s; others used %.0f %%",
            shape.architecture,
            seconds,
            speed,
            100 * other_load,
        )
        await asyncio.to_thread(self._cache.keep, key, speed, disturbed=other_load > DISTURBED)
        return speed
