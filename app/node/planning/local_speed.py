"""The speed of this machine with a model, either cached or measured now. Only one measurement (a trial) runs at a
time.

A speed depends on the engine's build, the hardware and the dimensions of the model's layers.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from app.core.errors import AppError, Busy
from app.core.household.household import IdleCard
from app.core.model import ModelShape
from app.core.planner.engine_choice import is_faster
from app.core.planner.forecast_range import DISTURBED_LOAD
from app.core.planner.speed_estimates import Speed, SpeedConditions
from app.inference.worker.layer_benchmark import BenchmarkSettings, Report, measure, report_nothing
from app.machine.hardware import devices, engines, graphics
from app.machine.hardware.added_engines import UsableEngine
from app.machine.hardware.cards import (
    PROCESSOR_ONLY,
    Card,
    ComputingCard,
    RefusedFamily,
    UnusedCard,
    is_crash,
    refusal_of,
)
from app.machine.hardware.cores import Threads
from app.machine.hardware.devices import other_programs_share
from app.machine.hardware.engines import Engine
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically
from app.machine.sensors.card_use import CardReading
from app.node.engines.added_engine import AddedEngine
from app.node.verification.spare_memory import SpareMemory
from backends.contract import LLAMACPP

log = logging.getLogger(__name__)

FORMAT = 6  # increased when the measurement itself changes
MOST_ENTRIES = 256
OLD_AFTER_S = 14 * 24 * 3600.0  # because drivers, cooling and other programs change
OLD_DISTURBED_S = 600.0  # for measurements disturbed by other programs, which may have ended since
WHILE_S = 3600.0
OWN_SHARE = 0.5  # share of the free memory for a trial, which takes only seconds
MOST_REPEATS = 8  # disturbed measurements that are repeated, the newest ones
SOON_S = 60.0  # time after which a disturbed measurement may be doubted again
MAX_DEVICE_TEXT = 200  # longest text that other machines accept

Key = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
Seconds = Annotated[float, Meta(ge=0, le=1e4)]
SomeSeconds = Annotated[float, Meta(gt=0, le=1e4)]


class _Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a measurement, saved so that it can be repeated."""

    shape: ModelShape
    conditions: SpeedConditions
    is_own: bool  # for this machine's own user, not for another host


class _CachedSpeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A Speed whose values are limited to plausible ranges."""

    measured_at: Annotated[float, Meta(ge=0)]  # seconds since 1970
    layer_s: SomeSeconds
    layer_row_s: Seconds
    position_s: Seconds
    chunk_s: SomeSeconds
    chunk_position_s: Seconds
    step_s: Seconds
    head_s: Seconds
    head_row_s: Seconds
    other_load: Annotated[float, Meta(ge=0, le=1)] = 0.0  # share of the processor that other programs used
    repeat: _Question | None = None  # asked again when it is quiet

    @property
    def disturbed(self) -> bool:
        return self.other_load > DISTURBED_LOAD

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
            other_load=self.other_load,
        )


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int = 0
    entries: Annotated[dict[Key, _CachedSpeed], Meta(max_length=MOST_ENTRIES)] = {}


@dataclass(frozen=True, slots=True)
class Setup:
    """The conditions, besides the model, that a measured speed depends on."""

    engine: str  # build and features, as in app/machine/hardware/engines.py
    device: str
    threads: int
    batch_rows: int
    exact: bool = False  # the processor's instructions are those that all common computers have


def measurement_key(setup: Setup, shape: ModelShape, *, head: bool) -> str:
    """Return the cache key of a measurement: 64 hex digits that change with anything that affects the speed."""
    facts = (FORMAT, setup.engine, setup.device, setup.threads, setup.batch_rows, setup.exact, head, shape)
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()


class Hardware:
    """The hardware and engines of this machine, described for the user and for the cache keys of measurements."""

    def __init__(self, threads: Threads, changed: Callable[[], None], graphics: ComputingCard = PROCESSOR_ONLY) -> None:
        self.threads, self._changed, self._graphics = threads, changed, graphics
        self.processor = devices.processor_name()
        self._engines: list[Engine] = []
        self._listed_card: IdleCard | None = None
        self._asking = asyncio.Lock()
        self.added_engine: AddedEngine | None = None  # the engine that the owner prefers to llama.cpp

    @property
    def device(self) -> str:
        """The processor's name and, once the engines have been probed, their devices."""
        labels = Counter(card.label for card in self._graphics.computing)
        parts = [label if n == 1 else f"{n} × {label}" for label, n in labels.items()]
        if self.added_engine and (label := self.added_engine.label):
            parts = [label, *parts]
        return " · ".join([*parts, engines.describe(self.processor, self._engines)])[:MAX_DEVICE_TEXT]

    @property
    def card(self) -> Card | None:
        """The best graphics card that computes, or None if the processor does."""
        return self._graphics.card

    def engine_for(self, conditions: SpeedConditions) -> UsableEngine | None:
        """Return the engine that computes a family instead of llama.cpp, or None."""
        if self.added_engine is None:
            return None
        return self.added_engine.for_stage(conditions.family, exact=conditions.exact, chosen=conditions.engine)

    def candidate_for(self, conditions: SpeedConditions) -> UsableEngine | None:
        """Return the engine whose speed is to be compared with llama.cpp's for a family, or None."""
        if self.added_engine is None or conditions.engine:
            return None
        return self.added_engine.candidate(conditions.family, exact=conditions.exact)

    def compare(self, conditions: SpeedConditions, candidate: Speed, usual: Speed) -> bool:
        """Return whether the added engine is faster than llama.cpp for a family. Record it if it is certain."""
        faster = is_faster(candidate, usual, conditions.batch_rows)
        if self.added_engine is None or faster is None:
            return False
        self.added_engine.compared(conditions.family, faster=faster)
        return faster

    def card_for(self, family: str) -> Card | None:
        """Return the graphics card that computes a family, or None if the processor does."""
        return self._graphics.card_for(family)

    def is_refusal(self, shape: ModelShape, conditions: SpeedConditions, error: AppError) -> bool:
        """Return whether a measurement failed because the preferred engine or the card cannot compute a family. If
        so, record this.
        """
        family = conditions.family
        if self.added_engine is not None and self.engine_for(conditions) is not None:
            return self.added_engine.not_measured(family, error)
        card, why, graphics = self.card_for(family), refusal_of(error), self._graphics
        if card is None or family.partition(" ")[0] != shape.architecture:
            return False  # a stand-in's failure says nothing about the family
        if why is not None:
            graphics.judge(card, family, why)
        elif is_crash(error) and not graphics.is_proved(family, (card.name,), with_head=False):
            graphics.crashed(card, family)
        else:
            return False
        return True

    @property
    def overflows(self) -> bool:
        """True if layers that do not fit on the graphics cards are computed by the processor."""
        return self._graphics.overflows

    @property
    def more_cards(self) -> tuple[Card, ...]:
        """The graphics cards that compute together with `card`."""
        return self._graphics.computing[1:]

    def card_reading(self) -> CardReading:
        """Return the sensor readings of the cards that compute. May block for seconds, so call this in a thread."""
        return self._graphics.reading()

    @property
    def unused_cards(self) -> tuple[UnusedCard, ...]:
        """The graphics cards that do not compute, and why."""
        return self._graphics.unused

    @property
    def idle_card(self) -> IdleCard | None:
        """The first graphics card that no engine pack in use supports, or None."""
        return None if self.card or self.unused_cards else self._listed_card

    @property
    def refused_families(self) -> tuple[RefusedFamily, ...]:
        """The model families that a graphics card does not compute."""
        return self._graphics.refused

    @property
    def announced(self) -> tuple[str, tuple[str, ...]]:
        """The device and the engine that runs layers, as announced to other machines. Includes the engine's version
        once it has been probed."""
        known = [engine for engine in self._engines if engine.name == LLAMACPP and not engine.missing]
        version = known[0].version[:40] if known else ""
        return self.device, (f"{LLAMACPP} {version}".strip(),)

    async def run(self) -> None:
        """List the graphics cards and probe the engines. A failure is logged, and the next call of `engines` probes
        again."""
        self._listed_card = await asyncio.to_thread(_listed_card)
        for engine in await self.engines():
            if engine.missing:
                log.warning("the engine %s cannot be used: %s", engine.name, engine.missing)
        self._changed()

    async def engines(self) -> list[Engine]:
        """Return all engines. They are probed only once, even if several callers wait."""
        async with self._asking:
            if not any(not engine.missing for engine in self._engines):
                self._engines = await engines.probe_all()
            return self._engines

    async def setup(self, conditions: SpeedConditions) -> Setup:
        """Return the setup under which a speed would be measured now."""
        return await self.setup_with(conditions, self.engine_for(conditions))

    async def setup_with(self, conditions: SpeedConditions, engine: UsableEngine | None) -> Setup:
        """Return the setup under which the speed of an engine would be measured. engine: None for llama.cpp."""
        build = "".join(engine.build for engine in await self.engines() if engine.name == LLAMACPP)
        if engine is not None:
            build = f"{build} {engine.label}"
        card = self.card_for(conditions.family) if engine is None else None
        device = f"{card.label} {card.api} {card.library.parent.name}" if card else self.processor
        return Setup(build, device, self.threads.most, conditions.batch_rows, conditions.exact)

    def processor_setup(self, setup: Setup) -> Setup:
        """Return the same setup for the processor, which computes layers next to a graphics card."""
        return replace(setup, device=self.processor)


def _listed_card() -> IdleCard | None:
    names = graphics.list_cards()
    return IdleCard(names[0][:MAX_DEVICE_TEXT], graphics.pack_for(names[0])) if names else None


class SpeedCache:
    """The measured speeds, saved in a small JSON file. Unreadable and outdated entries are ignored."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self._path, self._now = path, now
        self._entries = self._read()

    def get(self, key: str, disturbed_s: float = OLD_DISTURBED_S) -> Speed | None:
        """Return the measured speed if there is one that is not too old.

        disturbed_s: how long a speed is valid if other programs disturbed its measurement.
        """
        kept = self._entries.get(key)
        if kept is None or not self._is_younger(kept, disturbed_s if kept.disturbed else OLD_AFTER_S):
            return None
        return kept.speed()

    def _is_younger(self, kept: _CachedSpeed, most_s: float) -> bool:
        return -most_s < self._now() - kept.measured_at < most_s

    def to_repeat(self) -> dict[str, _CachedSpeed]:
        """Return the newest disturbed measurements, which are repeated once the computer is quiet."""
        repeated = {
            key: kept for key, kept in self._entries.items() if kept.repeat and self._is_younger(kept, OLD_AFTER_S)
        }
        return dict(list(repeated.items())[-MOST_REPEATS:])

    def settle(self, key: str) -> None:
        """Accept a measurement as it is, so that it is not repeated."""
        kept = self._entries.get(key)
        if kept is not None and kept.repeat is not None:
            self._entries[key] = msgspec.structs.replace(kept, repeat=None)
            self._write()

    def was_disturbed(self, key: str) -> bool:
        """Return whether the cached speed was measured while other programs used the processor."""
        return key in self._entries and self._entries[key].disturbed

    def last(self, key: str) -> Speed | None:
        """Return the last measured speed, even if it is outdated or doubtful."""
        kept = self._entries.get(key)
        return kept.speed() if kept else None

    def keep(self, key: str, speed: Speed, question: _Question | None = None) -> None:
        """Save a speed. If other programs disturbed its measurement, also save its parameters, so that it can be
        repeated. A write error is ignored, because the speed can be measured again.
        """
        self._entries.pop(key, None)
        names = set(_CachedSpeed.__struct_fields__) - {"measured_at", "repeat"}
        fields = {name: getattr(speed, name) for name in names}
        repeat = question if speed.other_load > DISTURBED_LOAD else None
        self._entries[key] = _CachedSpeed(measured_at=self._now(), repeat=repeat, **fields)
        for oldest in list(self._entries)[:-MOST_ENTRIES]:
            del self._entries[oldest]
        self._write()

    def doubt(self, key: str) -> None:
        """Mark a speed as outdated, so that it is measured again."""
        kept = self._entries.get(key)
        if kept is not None and kept.measured_at:
            self._entries[key] = msgspec.structs.replace(kept, measured_at=0)
            self._write()

    def _read(self) -> dict[str, _CachedSpeed]:
        stored = read_json_or_default(self._path, _File, "measured speeds")
        return dict(stored.entries) if stored.format == FORMAT else {}

    def _write(self) -> None:
        try:
            write_atomically(self._path, msgspec.json.encode(_File(FORMAT, self._entries)))
        except OSError as error:
            log.warning("the measured speeds could not be saved in %s: %s", self._path, error)


class Cooldown:
    """Limits how often an action, identified by a key, is repeated."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._done_s: dict[Hashable, float] = {}

    def is_over(self, key: Hashable, within_s: float = WHILE_S) -> bool:
        """Return whether more than `within_s` seconds have passed since the action was last done."""
        return self._now() - self._done_s.get(key, -WHILE_S) >= within_s

    def start(self, key: Hashable) -> None:
        """Record that the action was done just now."""
        self._done_s = {key_done: at for key_done, at in self._done_s.items() if not self.is_over(key_done)}
        self._done_s[key] = self._now()


class LentWork(Protocol):
    """The work of this machine for other hosts."""

    @property
    def used_bytes(self) -> int: ...
    def busy(self) -> bool: ...


class OwnAnswers(Protocol):
    """The answers that are generated for this machine's own user."""

    @property
    def answering(self) -> bool: ...


class TrialLimits(Protocol):
    """The owner's limits for trials that other hosts request, which use the lent memory and threads."""

    spare_memory: SpareMemory

    def require(self) -> None: ...
    def lent_bytes(self) -> int: ...
    def threads(self) -> int: ...


@dataclass(frozen=True, slots=True)
class LocalWork:
    """The work on this machine that a trial could disturb. A trial checks it before each step."""

    hardware: Hardware
    borrowed: LentWork
    own: OwnAnswers
    terms: TrialLimits

    def busy(self) -> bool:
        """Return whether this machine is computing an answer for anyone, or loading layers for another host."""
        return self.own.answering or self.borrowed.busy()

    def lent_threads(self) -> Threads:
        """Return the threads that other hosts' layers may use."""
        return self.hardware.threads.at_most(self.terms.threads())

    def lent_bytes(self) -> int:
        """Return how many more bytes a host may use. Raises Refused if lending is stopped."""
        self.terms.require()
        return max(0, self.terms.lent_bytes() - self.borrowed.used_bytes)


class LocalSpeed:
    """Measures the speed of this machine. `root` contains the cache and, during a trial, a folder for the trial's
    files."""

    def __init__(self, here: LocalWork, root: Path) -> None:
        self._here, self.root = here, root
        self._cache = SpeedCache(root / "speeds.json")
        self._cooldown = Cooldown()  # limits how often a speed is doubted
        self._turn = asyncio.Lock()
        self._rested_at = 0.0

    async def known(self, shape: ModelShape, conditions: SpeedConditions) -> Speed | None:
        """Return the last measured speed, even if it is so old that `for_user` would measure it again."""
        hardware = self._here.hardware
        setup = await hardware.setup(conditions)
        speed = self._cache.last(measurement_key(setup, shape, head=True))
        if speed is None or hardware.card_for(conditions.family) is None or not hardware.overflows:
            return speed
        beside = hardware.processor_setup(setup)
        return replace(speed, processor=self._cache.last(measurement_key(beside, shape, head=False)))

    async def for_user(
        self,
        shape: ModelShape,
        conditions: SpeedConditions,
        report: Report = report_nothing,
        *,
        disturbed_s: float = OLD_DISTURBED_S,
    ) -> Speed:
        """Return the speed including the output matrix, for this machine's own user. Waits for a running trial.

        If a graphics card computes, the speed of the processor next to it is included, provided that it could be
        measured.

        disturbed_s: how long a speed is valid if other programs disturbed its measurement.

        Raises the errors of `measure`, including Busy.
        """
        try:
            return await self._for_user(shape, conditions, report, disturbed_s)
        except AppError as error:
            if not self._here.hardware.is_refusal(shape, conditions, error):
                raise
        return await self._for_user(shape, conditions, report, disturbed_s)  # by what computes instead

    async def _for_user(
        self, shape: ModelShape, conditions: SpeedConditions, report: Report, disturbed_s: float
    ) -> Speed:
        hardware = self._here.hardware
        usual = await self._with_engine(shape, conditions, hardware.engine_for(conditions), report, disturbed_s)
        candidate = hardware.candidate_for(conditions)
        if candidate is None:
            return usual
        try:
            speed = await self._with_engine(shape, conditions, candidate, report, disturbed_s)
        except AppError as error:
            if hardware.added_engine is None or not hardware.added_engine.not_measured(conditions.family, error):
                raise
            return usual
        return speed if hardware.compare(conditions, speed, usual) else usual

    async def _with_engine(
        self,
        shape: ModelShape,
        conditions: SpeedConditions,
        engine: UsableEngine | None,
        report: Report,
        disturbed_s: float,
    ) -> Speed:
        hardware, question = self._here.hardware, _Question(shape, conditions, is_own=True)
        setup = await hardware.setup_with(conditions, engine)
        card = hardware.card_for(conditions.family) if engine is None else None
        key = measurement_key(setup, shape, head=True)
        free = (card or devices.memory()).free_bytes
        gauge = BenchmarkSettings(
            hardware.threads,
            conditions.batch_rows,
            int(free * OWN_SHARE),
            head=True,
            low_priority=False,
            card=card,
            exact=conditions.exact,
            engine=engine,
        )
        speed = await self._measured_once(key, question, gauge, report, disturbed_s)
        if card is None or not hardware.overflows:
            return speed
        beside = measurement_key(hardware.processor_setup(setup), shape, head=False)
        allowed = int(devices.memory().free_bytes * OWN_SHARE)
        try:
            gauge = replace(gauge, card=None, head=False, allowed_bytes=allowed)
            return replace(speed, processor=await self._measured_once(beside, question, gauge, report, disturbed_s))
        except AppError as error:
            log.info("the processor beside the graphics card was not measured: %s", error.reason)
            return speed

    async def _measured_once(
        self, key: str, question: _Question, gauge: BenchmarkSettings, report: Report, disturbed_s: float
    ) -> Speed:
        if known := self._cache.get(key, disturbed_s):
            return known
        async with self._turn:
            if known := self._cache.get(key, disturbed_s):
                return known
            return await self._trial(key, question, gauge, self._here.busy, report)

    async def for_member(
        self, shape: ModelShape, conditions: SpeedConditions, *, again: bool, disturbed_s: float | None = None
    ) -> Speed:
        """Return the speed without the output matrix for another host, measured with the lent resources. Each
        trial is followed by a pause of the same length.

        again: the host doubts the known speed, so measure it again unless this was done recently.
        disturbed_s: how long a speed is valid if other programs disturbed its measurement. If None, it stays valid
            while such programs keep running.

        Raises the errors of `measure`, and Busy during a trial and the pause after it. If the preferred engine
        or the graphics card turns out not to compute the family, the next request measures what computes instead.
        """
        try:
            return await self._for_member(shape, conditions, again=again, disturbed_s=disturbed_s)
        except AppError as error:
            if not self._here.hardware.is_refusal(shape, conditions, error):
                raise
        raise Busy("speed_busy")

    async def _for_member(
        self, shape: ModelShape, conditions: SpeedConditions, *, again: bool, disturbed_s: float | None
    ) -> Speed:
        hardware = self._here.hardware
        speed = await self._lent_with_engine(
            shape, conditions, hardware.engine_for(conditions), again=again, disturbed_s=disturbed_s
        )
        candidate = hardware.candidate_for(conditions)
        if candidate is None:
            return speed
        try:
            other = await self._lent_with_engine(
                shape, conditions, candidate, again=False, disturbed_s=disturbed_s, rests=False
            )
        except Busy:
            return speed  # the next request compares them
        except AppError as error:
            if hardware.added_engine is None or not hardware.added_engine.not_measured(conditions.family, error):
                raise
            return speed
        return other if hardware.compare(conditions, other, speed) else speed

    async def _lent_with_engine(
        self,
        shape: ModelShape,
        conditions: SpeedConditions,
        engine: UsableEngine | None,
        *,
        again: bool,
        disturbed_s: float | None,
        rests: bool = True,
    ) -> Speed:
        """Return the speed of an engine with the lent resources. rests: whether the pause after a trial counts."""
        hardware, threads = self._here.hardware, self._here.lent_threads()
        setup = replace(await hardware.setup_with(conditions, engine), threads=threads.most)
        card = hardware.card_for(conditions.family) if engine is None else None
        key, beside = measurement_key(setup, shape, head=False), ""
        if card is not None and hardware.overflows:
            beside = measurement_key(hardware.processor_setup(setup), shape, head=False)
        if disturbed_s is None:
            disturbed_s = OLD_DISTURBED_S if again else await self._disturbed_holds_s(key, beside)
        known = None if again and self._may_doubt(key) else self._cache.get(key, disturbed_s)
        processor = self._cache.get(beside, disturbed_s) if beside else None
        if known and (processor or not beside):
            return replace(known, processor=processor)
        if self._turn.locked() or (rests and time.monotonic() < self._rested_at):
            if known:
                return known
            raise Busy("speed_busy")
        async with self._turn:
            began = time.monotonic()
            most_bytes = self._here.lent_bytes()
            if card is None:  # the lent bytes may be those of a card that does not compute this family
                allowed = min(most_bytes, int(devices.memory().free_bytes * OWN_SHARE))
            else:
                allowed = min(most_bytes, card.free_bytes)
            gauge = BenchmarkSettings(
                threads, conditions.batch_rows, allowed, head=False, card=card, exact=conditions.exact, engine=engine
            )
            question = _Question(shape, conditions, is_own=False)
            try:
                speed = known or await self._trial(key, question, gauge, self._must_stop, report_nothing)
                if again and not known:
                    self._cooldown.start(key)
                if beside and not processor:
                    allowed = min(most_bytes, int(devices.memory().free_bytes * OWN_SHARE))
                    gauge = replace(gauge, card=None, allowed_bytes=allowed)
                    try:
                        processor = await self._trial(beside, question, gauge, self._must_stop, report_nothing)
                    except AppError as error:
                        log.info("the processor beside the graphics card was not measured: %s", error.reason)
                return replace(speed, processor=processor)
            finally:
                now = time.monotonic()
                self._rested_at = now + (now - began)

    async def _disturbed_holds_s(self, *keys: str) -> float:
        """Return how long disturbed speeds are valid. They stay valid longer while other programs are still busy,
        because repeating the measurement would not help then.
        """
        if not any(self._cache.was_disturbed(key) for key in keys):
            return OLD_DISTURBED_S
        return OLD_AFTER_S if await asyncio.to_thread(other_programs_share) > DISTURBED_LOAD else OLD_DISTURBED_S

    async def doubt(self, shape: ModelShape, conditions: SpeedConditions, *, by_hand: bool = False) -> bool:
        """Mark the known speed as outdated, so that the next request measures it again. Return False if it was
        already doubted recently.

        by_hand: the user asks for it, so mark the speed in any case.
        """
        hardware = self._here.hardware
        setup = await hardware.setup(conditions)
        key = measurement_key(setup, shape, head=True)
        if not by_hand and not self._may_doubt(key):
            return False
        if by_hand and hardware.added_engine is not None:
            hardware.added_engine.compare_again(conditions.family)
            if (candidate := hardware.candidate_for(conditions)) is not None:
                for engine in (None, candidate):
                    compared = await hardware.setup_with(conditions, engine)
                    await asyncio.to_thread(self._cache.doubt, measurement_key(compared, shape, head=True))
        self._cooldown.start(key)
        await asyncio.to_thread(self._cache.doubt, key)
        if hardware.overflows:
            beside = measurement_key(hardware.processor_setup(setup), shape, head=False)
            await asyncio.to_thread(self._cache.doubt, beside)
        return True

    def _may_doubt(self, key: str) -> bool:
        """Return whether the speed may be doubted again. A repeated measurement is trusted for a while, but only
        briefly if other programs disturbed it."""
        return self._cooldown.is_over(key, SOON_S if self._cache.was_disturbed(key) else WHILE_S)

    def _must_stop(self) -> bool:
        """Return whether a trial for another machine must stop because other work needs this one. Raises Refused if
        lending has stopped."""
        self._here.lent_bytes()
        return self._here.busy()

    async def _trial(
        self, key: str, question: _Question, gauge: BenchmarkSettings, busy: Callable[[], bool], report: Report
    ) -> Speed:
        if busy():
            raise Busy("speed_busy")
        other_load = await asyncio.to_thread(other_programs_share)
        began = time.monotonic()
        folder = self.root / "measuring"
        async with self._here.terms.spare_memory.reserve():  # no check of samples may run at the same time
            speed = await measure(question.shape, folder, gauge, busy=busy, report=report)
        seconds = time.monotonic() - began
        log.info(
            "%s layers measured in %.1f s: %s; other programs used %.0f %% of the processor",
            question.shape.architecture,
            seconds,
            speed,
            100 * other_load,
        )
        speed = replace(speed, other_load=other_load)
        await asyncio.to_thread(self._cache.keep, key, speed, question)
        return speed

    @property
    def has_disturbed(self) -> bool:
        """Return whether a measurement was disturbed by other programs and not repeated since."""
        return bool(self._cache.to_repeat())

    async def repeat_disturbed(self) -> bool:
        """Repeat the newest disturbed measurements within the current limits. Return whether any was repeated.

        If the machine is busy, the measurement is left for the next call. If the measurement fails, it is not tried
        again.
        """
        again = False
        for key, before in self._cache.to_repeat().items():
            question = before.repeat
            if question is None or self._cache.to_repeat().get(key) is not before:  # repeated with another one
                continue
            shape, conditions = question.shape, question.conditions
            try:
                if question.is_own:
                    await self.for_user(shape, conditions, disturbed_s=0.0)
                else:
                    await self.for_member(shape, conditions, again=False, disturbed_s=0.0)
                again = True
            except Busy:
                continue
            except AppError as error:
                log.info("a disturbed measurement was not repeated: %s", error.reason)
            if self._cache.to_repeat().get(key) is before:  # failed, or the setup has changed since
                await asyncio.to_thread(self._cache.settle, key)
        return again
