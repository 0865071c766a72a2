"""The owner's control over lending: rules, manual pauses, and the loop that enforces them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

import msgspec

from app.api import requests
from app.api.snapshot import Lending as LendingSnapshot
from app.api.snapshot import LendingReadings, LendingRules, LendingState
from app.core.errors import BadInput, Reason, Refused
from app.core.ids import MachineId
from app.core.lending.hours import format_hours, parse_hours
from app.core.lending.lending import (
    OFF,
    OWNER,
    QUIET_SECONDS,
    STOPPED,
    Draining,
    Event,
    GiveBack,
    Off,
    Pause,
    Paused,
    PolicyApplied,
    Ready,
    Resume,
    StagesInspected,
    State,
    StateWord,
    Working,
    reason_of,
    state_word,
    step,
)
from app.core.lending.policy import (
    CARD_HOT_LEAST,
    LINK_LEAST_MBIT,
    PROCESSOR,
    Allowed,
    Denied,
    LendableMemory,
    Readings,
    Rules,
    Verdict,
    may_lend,
    with_figures,
)
from app.core.reasons import sentence
from app.machine import settings
from app.machine.hardware import devices
from app.machine.hardware.cards import PROCESSOR_ONLY, ComputingCard
from app.machine.sensors.owner_activity import OwnerSensors
from app.machine.settings import SettingsStore
from app.network.traffic_limits import LinkPace
from app.node.known_household import KnownHousehold
from app.node.verification.spare_memory import SpareMemory

OWNERS_SHARE = 0.5  # share of the memory free at start that is reserved for the owner by default (SAFETY.md 8)
OWN_MODELS_SHARE = 0.8  # share of the free memory that this machine's own models may use
LEAST_BYTES = 16 << 20  # least amount to lend; no part of a model fits in less

SENSE_SECONDS = 5.0  # between readings of the sensors
LOOK_SECONDS, DRAIN_LOOK_SECONDS = 1.0, 0.25  # between checks of the lent layers
QUIT = Reason("pause_quit")
# time for answers to move elsewhere before a sleep or shutdown; operating systems wait five seconds
LEAVE_SECONDS = 4.0
KILLED_SECONDS = 0.5  # longer than a worker takes to end, unless a driver blocks it
COMPUTED_SECONDS = 1.0  # the longest gap between two tokens of a running answer
STOPPED_SECONDS = 3.0  # longest time that an owner waits until all memory is freed


class MemoryRules:
    """The limits of this machine's memory. `chosen_bytes` limits only other hosts; `limit_bytes`, unless 0, also
    limits this machine's own models."""

    def __init__(
        self, chosen_bytes: int | None, memory: Callable[[], devices.Memory] = devices.memory, limit_bytes: int = 0
    ) -> None:
        self._memory = memory
        self.reclaimable_bytes: Callable[[], int] = lambda: 0  # bytes in use that are freed as soon as they are needed
        # what other hosts, and all models, use of this machine's other memory; it counts towards the owner's limits
        self.elsewhere: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self.set_default()
        self.chosen_bytes, self.limit_bytes = chosen_bytes, limit_bytes

    def set_default(self, taken_bytes: int = 0) -> None:
        """Update the default amount to lend: half of the memory that would be free without models.

        The default applies only if the owner has not chosen an amount. taken_bytes: the memory that models use now.
        """
        self._default_bytes = int((self._memory().free_bytes + taken_bytes) * OWNERS_SHARE)

    def check(self, chosen_bytes: int) -> None:
        """Raise BadInput for a value that exceeds this machine's memory or is too small to be useful."""
        if 0 < chosen_bytes < LEAST_BYTES:
            raise BadInput("lend_too_little", asked_bytes=chosen_bytes, least_bytes=LEAST_BYTES)
        total = self._memory().total_bytes
        if chosen_bytes > total:
            raise BadInput("lend_more_than_there", asked_bytes=chosen_bytes, total_bytes=total)

    def room(self, used_bytes: int, unloaded_bytes: int, own_bytes: int) -> LendableMemory:
        """Return the state of the memory, from which the policy computes how much other hosts may use.

        used_bytes: promised to other hosts.
        unloaded_bytes: promised but still counted as free by the system.
        own_bytes: used by this machine's own models.
        """
        now = self._now()
        lent_bytes, _ = self.elsewhere()
        most = self._default_bytes if self.chosen_bytes is None else max(0, self.chosen_bytes - lent_bytes)
        limit = min(self._limit_here() or now.total_bytes, now.most_bytes or now.total_bytes)
        limit = 0 if limit == now.total_bytes else limit
        most = min(most, limit or most)
        return LendableMemory(most, now.total_bytes, now.free_bytes, used_bytes, unloaded_bytes, own_bytes, limit)

    def own_bytes(self, used_bytes: int, unloaded_bytes: int, own_bytes: int) -> int:
        """Return the total bytes that this machine's own models may use, including the bytes that they already use.

        The arguments are those of `room`. Memory used by other hosts is subtracted from the limit. Without a limit,
        it is not subtracted, because the free memory already excludes it.
        """
        now = self._memory()
        most = now.total_bytes if now.most_bytes is None else now.most_bytes
        if self.limit_bytes:  # the owner set the limit, so it applies regardless of the free memory
            return max(0, min(self._limit_here(), most) - used_bytes)
        return max(0, min(self._without_limit(unloaded_bytes, own_bytes), most - used_bytes))

    def _limit_here(self) -> int:
        """Return how much of the owner's limit is left for this kind of memory, or 0 if there is no limit.

        The memory that models use elsewhere in this machine is subtracted.
        """
        _, every_bytes = self.elsewhere()
        return max(1, self.limit_bytes - every_bytes) if self.limit_bytes else 0

    def past_limit_bytes(self, used_bytes: int, unloaded_bytes: int, own_bytes: int) -> int | None:
        """Return how many more bytes this machine's own models could use without the owner's limit.

        The arguments are those of `room`. Return None if there is no limit, or if it is not below the total memory.
        """
        if not 0 < self.limit_bytes < self._memory().total_bytes:
            return None
        limited = self.own_bytes(used_bytes, unloaded_bytes, own_bytes)
        return max(0, self._without_limit(unloaded_bytes, own_bytes) - limited)

    def spare_bytes(self, used_bytes: int, unloaded_bytes: int, own_bytes: int) -> int:
        """Return how many more bytes this machine's own models could load now. The arguments are those of `room`."""
        most = self.own_bytes(used_bytes, unloaded_bytes, own_bytes)
        return max(0, min(most - own_bytes, self._now().free_bytes - unloaded_bytes))

    def _without_limit(self, unloaded_bytes: int, own_bytes: int) -> int:
        free = max(0, self._now().free_bytes - unloaded_bytes)
        return int((free + own_bytes) * OWN_MODELS_SHARE)

    def _now(self) -> devices.Memory:
        now = self._memory()
        return devices.Memory(now.total_bytes, now.free_bytes + self.reclaimable_bytes(), now.most_bytes)


class LentStages(Protocol):
    """The stages that other hosts run on this machine, implemented by app/node/lending/lending_service.py."""

    def borrowers(self) -> Set[MachineId]: ...
    def quiet_s(self) -> float: ...
    def is_answering(self) -> bool: ...
    def is_on_card_switched_off(self) -> bool: ...
    def is_on_processor(self) -> bool: ...
    async def stop_now(self, why: Reason) -> None: ...


class LendingPolicy:
    """Decides how much memory may be lent now, and reclaims the excess. Lending is off until `begin`.

    uses: returns the bytes promised to other hosts, the bytes reserved but not loaded yet, and the bytes of this
        machine's own models.
    pace: limits how fast this machine sends and receives.
    """

    def __init__(
        self,
        choices: SettingsStore,
        uses: Callable[[], tuple[int, int, int]],
        household: KnownHousehold,
        pace: LinkPace,
        changed: Callable[[], None],
        sensors: OwnerSensors | None = None,
        memory: Callable[[], devices.Memory] = devices.memory,
        graphics: ComputingCard = PROCESSOR_ONLY,
    ) -> None:
        self._choices, self._uses, self._changed, self._graphics = choices, uses, changed, graphics
        self._household, self._pace = household, pace
        self._sensors = sensors or OwnerSensors(card=graphics.reading)
        rules = choices.now.lending
        self._main_memory = devices.memory
        self.memory = MemoryRules(rules.memory_bytes, memory, rules.limit_bytes)
        # the same limits for the families that a card does not compute
        self.main_memory = MemoryRules(rules.memory_bytes, limit_bytes=rules.limit_bytes)
        self.spare_memory = SpareMemory(self._spare_bytes)
        self.memory.reclaimable_bytes = self.spare_memory.reclaimable_bytes
        self.main_memory.reclaimable_bytes = self.spare_memory.reclaimable_bytes
        self.state: State = Off()
        self._senses = Readings(time.monotonic())
        self._verdict: Verdict | None = None
        self._since, self._told = time.time(), state_word(self.state)
        self._borrowed: LentStages
        self._news = asyncio.Event()
        self._leaves: Reason | None = None  # why this computer or node is about to sleep or stop

    def _spare_bytes(self) -> int:
        """Return how many bytes may be loaded speculatively. They must fit in main memory, even if a card computes
        the models.
        """
        return min(self.memory.spare_bytes(*self._uses()), devices.memory().free_bytes)

    @property
    def rules(self) -> Rules:
        return self._choices.now.lending

    async def begin(self, borrowed: LentStages) -> None:
        """Restore an earlier pause, and read the sensors for the first time."""
        self._borrowed = borrowed
        self._pace.limit(self.rules.link_mbit)
        pause, now_s = self._choices.now.pause, time.monotonic()
        if pause is not None and (pause.until is None or pause.until > time.time()):
            until_s = None if pause.until is None else now_s + pause.until - time.time()
            self._step(Pause(now_s, until_s, STOPPED if pause.stopped else OWNER))
        await self._sense()

    async def run(self) -> None:
        """Apply the rules until canceled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_sensing(), name="read the sensors")
            tasks.create_task(self._keep_looking(), name="watch the lent layers")

    def lent_bytes(self) -> int:
        """Return the total bytes that other hosts may currently use."""
        allowed = self._allowed()
        return allowed.bytes if allowed else 0

    def lends_processor(self) -> bool:
        """Return whether the processor may compute for other hosts although this machine has a graphics card."""
        return self._allowed() is not None and not self._choices.now.graphics.card_only

    def _allowed(self) -> Allowed | None:
        verdict = self._verdict_now()
        lends = isinstance(self.state, Ready | Working) and self._household.rights.may_lend()
        return verdict if lends and isinstance(verdict, Allowed) and verdict.has(PROCESSOR) else None

    def threads(self) -> int:
        """Return the number of processor threads that another host's layers may use. 0 means all threads."""
        return self.rules.threads

    def require(self) -> None:
        """Raise Refused with the reason if no new work may begin here."""
        why = self.reason()
        if why is not None:
            raise Refused(why.code, **why.facts)

    def reason(self) -> Reason | None:
        """Return the reason why lending is stopped or is about to stop, or None."""
        return reason_of(self.state) or self._denial(self._verdict_now())

    def watts(self) -> int | None:
        """Return the power that this computer draws in watts, or None if its system does not report it."""
        seen = self._senses.watts
        return None if seen is None else round(min(seen, 10_000))

    def used_by(self) -> tuple[MachineId, ...]:
        """Return the machines whose models have layers here."""
        return tuple(sorted(self._borrowed.borrowers()))

    def hottest_c(self) -> int | None:
        """Return the processor's temperature in whole degrees Celsius, or None if the system does not report one."""
        seen = self._senses.hottest_c
        return None if seen is None else round(seen)

    def apply_soon(self) -> None:
        """Apply the rules again soon. The lent layers or the household may have changed."""
        self._news.set()

    # requests of the owner

    async def change(self, order: requests.ChangeLending) -> LendingState:
        """Change the rules, effective immediately. Raises BadInput, or DoesNotFit if they cannot be saved."""
        changes = {
            field: value for field in order.__struct_fields__ if (value := getattr(order, field)) is not msgspec.UNSET
        }
        for device in changes.get("devices", ()):
            if device != PROCESSOR:
                raise BadInput("device_unknown", device=device, devices=PROCESSOR)
        if "hours" in changes:
            changes["hours"] = parse_hours(changes["hours"])
        if 0 < changes.get("link_mbit", 0) < LINK_LEAST_MBIT:
            raise BadInput("link_limit_low", least=LINK_LEAST_MBIT)
        if 0 < changes.get("card_celsius", 0) < CARD_HOT_LEAST:
            raise BadInput("card_limit_low", least=CARD_HOT_LEAST)
        if (threads := changes.get("threads", 0)) > (cores := devices.usable_cores()):
            raise BadInput("lend_threads_more", threads=threads, cores=cores)
        for name in ("memory_bytes", "limit_bytes"):
            self.memory.check(changes.get(name) or 0)
        if changes.get("memory_bytes", 0) != 0:
            changes.setdefault("on", True)  # choosing an amount turns lending on
        if not changes:
            return self.full_state()
        await self._choices.change(lambda now: msgspec.structs.replace(now, lending=replace(now.lending, **changes)))
        for memory in (self.memory, self.main_memory):
            memory.chosen_bytes, memory.limit_bytes = self.rules.memory_bytes, self.rules.limit_bytes
        self._pace.limit(self.rules.link_mbit)
        await self.judge_afresh()
        self._changed()  # the lent bytes may differ even if the state does not
        return self.full_state()

    async def pause(self, seconds: float | None, at_once: bool) -> LendingState:
        """Pause for `seconds`, or until resumed if None. If `at_once`, kill the workers and wait until they have
        ended."""
        now_s = time.monotonic()
        until_s = None if seconds is None else now_s + seconds
        why, deadline_s = (STOPPED, now_s) if at_once else (OWNER, now_s + self.rules.drain_s)
        self._step(Pause(deadline_s, until_s, why))
        self._news.set()
        until = None if seconds is None else time.time() + seconds
        await self._keep_pause(settings.Pause(until, at_once))
        if at_once:
            with suppress(TimeoutError):
                async with asyncio.timeout(STOPPED_SECONDS):
                    while self._borrowed.borrowers():  # noqa: ASYNC110  ends in other tasks
                        await asyncio.sleep(0.02)
        return self.full_state()

    async def resume(self) -> LendingState:
        """End a manual pause. From then on, the rules decide."""
        self._step(Resume())
        await self._keep_pause(None)
        await self.judge_afresh()
        return self.full_state()

    async def leave(self, why: Reason = QUIT) -> None:
        """Announce to the hosts with layers here that this computer or node is about to sleep or stop. Return when
        no answer needs the layers anymore, or after a few seconds.

        Hosts that still need their layers then learn that their runs have ended. If they merely lost the link, they
        would wait for this machine to return.
        """
        self._leaves = why
        self._judge()
        self._news.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                while self._is_needed():  # noqa: ASYNC110  ends in other tasks
                    await asyncio.sleep(0.02)
        if self._is_needed():
            with suppress(TimeoutError):  # all workers have been killed, and the system is waiting
                async with asyncio.timeout(KILLED_SECONDS):
                    await self._borrowed.stop_now(why)

    def _is_needed(self) -> bool:
        """Return whether an answer still uses the layers here although this computer is about to stop."""
        if self._leaves is None:  # the sleep or shutdown was canceled
            return False
        lent = self._borrowed
        return bool(lent.borrowers()) and (lent.is_answering() or lent.quiet_s() < COMPUTED_SECONDS)

    def stay(self) -> None:
        """Resume lending after a sleep or a canceled shutdown. Has no effect if the node is quitting."""
        if self._leaves == QUIT:
            return
        self._leaves = None
        self._judge()
        self._news.set()

    def snapshot(self) -> LendingSnapshot:
        """Return the state of lending and how much memory is lent now."""
        lent, (used, _, _), why = self.lent_bytes(), self._uses(), self.reason()
        reason = why and with_figures(why, self._senses)
        room, now_s = self.memory.room(*self._uses()), time.monotonic()
        then = self.state.then if isinstance(self.state, Draining) else self.state
        until_s = then.until_s if isinstance(then, Paused) else None
        deadline_s = self.state.deadline_s if isinstance(self.state, Draining) else None
        return LendingSnapshot(
            state=self.state_word(),
            reason=sentence(reason),
            reason_facts=reason,
            code=why.code if why else None,
            used_by=sorted(self._household.name(machine) for machine in self._borrowed.borrowers()),
            lent_bytes=lent,
            used_bytes=used,
            total_bytes=room.total_bytes,
            free_bytes=room.free_bytes,
            reserve_bytes=room.reserve_bytes,
            own_bytes=room.own_bytes,
            since=round(self._since),
            resumes_in_s=None if until_s is None else max(0, round(until_s - now_s)),
            gives_back_in_s=None if deadline_s is None else max(0, round(deadline_s - now_s)),
        )

    def state_word(self) -> StateWord:
        """Return the state in one word, for the window and other machines. It is "working" only while lent layers are
        computing."""
        if not isinstance(self.state, Ready | Working):
            return state_word(self.state)
        if not (isinstance(self.state, Working) or self._uses()[0]):
            return "ready"
        return "working" if self._borrowed.quiet_s() < QUIET_SECONDS else "lending"

    def full_state(self) -> LendingState:
        """Return the state, the rules and the sensor readings that the rules depend on, for `poolhouse lend`."""
        senses, rules = self._senses, msgspec.to_builtins(self.rules)
        return LendingState(
            lending=self.snapshot(),
            rules=LendingRules(**{**rules, "hours": format_hours(self.rules.hours)}),
            most_bytes=self.memory.room(0, 0, 0).most_bytes,
            most_threads=devices.usable_cores(),
            own_most_bytes=self.memory.own_bytes(*self._uses()),
            readings=LendingReadings(
                idle_s=senses.idle_s,
                battery=senses.battery,
                programs=sorted(senses.programs),
                gpu_percent=senses.gpu_percent,
                hottest_c=senses.hottest_c,
                full_screen=senses.full_screen,
                network=senses.network,
                card_c=senses.card_c,
            ),
        )

    async def _keep_sensing(self) -> None:
        while True:
            await asyncio.sleep(SENSE_SECONDS)
            await self._sense()

    async def _keep_looking(self) -> None:
        while True:
            self._judge()  # memory changes faster than the sensors
            was_paused = isinstance(self.state, Paused)
            lent = self._borrowed
            hosts = frozenset(lent.borrowers())
            seen = StagesInspected(time.monotonic(), hosts, lent.quiet_s(), lent.is_answering())
            for command in self._step(seen):
                await self._borrowed.stop_now(command.why)
                self._news.set()  # the freed memory is noticed immediately
            if was_paused and isinstance(self.state, Ready):
                self._judge()
            if self._told != (state := self.state_word()):
                self._told = state
                self._changed()  # the lent layers have started or stopped computing
            pace = DRAIN_LOOK_SECONDS if isinstance(self.state, Draining) else LOOK_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(pace):
                    await self._news.wait()
            self._news.clear()

    async def _sense(self) -> None:
        rules = self.rules
        senses = await asyncio.to_thread(self._sensors.read, rules)
        if rules is self.rules:  # otherwise the rules have changed, which causes another reading
            before, self._senses = self.watts(), senses
            self._judge()
            if self.watts() != before:
                self._changed()

    async def judge_afresh(self) -> None:
        """Apply the rules as if there were no previous verdict. Call this when the owner has changed something."""
        self._verdict = None
        await self._sense()
        self._news.set()

    def _judge(self) -> None:
        card_only = self._choices.now.graphics.card_only
        self._senses = replace(
            self._senses,
            card_off=self._borrowed.is_on_card_switched_off(),
            on_processor=card_only and self._borrowed.is_on_processor(),
        )
        self._verdict = verdict = self._verdict_now()
        now_s = time.monotonic()
        in_need = isinstance(verdict, Denied) and verdict.at_once
        drain_s = min(self.rules.drain_s, LEAVE_SECONDS) if self._leaves else self.rules.drain_s
        self._step(PolicyApplied(verdict, now_s if in_need else now_s + drain_s))

    def _verdict_now(self) -> Verdict:
        senses = replace(
            self._senses,
            now_s=time.monotonic(),
            lacks_card=self._choices.now.graphics.card_only and self._graphics.card is None,
            tests_card=self._graphics.is_starting,
        )
        if self._leaves is not None:
            return Denied(self._leaves, senses.now_s)
        if not self._household.rights.may_lend():
            return Denied(Reason("lend_no_role"), senses.now_s)
        room = self.memory.room(*self._uses())
        if self._graphics.card is not None:
            main = self._main_memory()
            room = replace(room, main_total_bytes=main.total_bytes, main_free_bytes=main.free_bytes)
        return may_lend(self.rules, senses, room, self._verdict)

    def _denial(self, verdict: Verdict) -> Reason | None:
        if isinstance(verdict, Denied):
            return verdict.why
        return None if isinstance(verdict, Allowed) else OFF

    def _step(self, event: Event) -> tuple[GiveBack, ...]:
        before = self.state
        self.state, commands = step(before, event)
        if self.state != before:
            if (state_word(before), reason_of(before)) != (state_word(self.state), reason_of(self.state)):
                self._since = time.time()
            self._changed()
        return commands

    async def _keep_pause(self, pause: settings.Pause | None) -> None:
        await self._choices.change(lambda now: msgspec.structs.replace(now, pause=pause))
