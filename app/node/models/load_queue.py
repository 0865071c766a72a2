"""The queue of a host's loads. One load runs at a time, can be stopped, and is retried without machines that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from app.api.plans import Progress
from app.core.errors import AppError, DoesNotFit, Fact, Reason, Refused, StageFailed, StageLost, Unreachable
from app.core.ids import MachineId
from app.core.planner.placement import Plan
from app.core.recovery import fault_table
from app.core.recovery.fault_table import Fault, Retry
from app.core.recovery.recovery import MAX_RECOVERIES, Loss
from app.machine.hardware.cards import ComputingCard
from app.node.cancellation import run_until
from app.node.control.json_bodies import Report
from app.node.journal import Journal
from app.node.models.loaded_models import LoadedModels
from app.node.placement.placement import Placement

ENOUGH_MACHINES = 2  # number of other machines whose errors prove that the model is at fault
OF_THE_FILE = {"worker_crashed": "model_ends_process", "numbers_not_finite": "model_not_finite"}
# In a card's first test, its driver compiles code. After this time, the processor is better than a longer wait.
WAIT_SECONDS = 120.0
SHOWN_AFTER_SECONDS = 0.3
T = TypeVar("T")


class LoadLock(asyncio.Lock):
    """The lock held while loading. Requests for models that stay loaded need not wait for it."""

    def __init__(self, loaded: LoadedModels) -> None:
        super().__init__()
        self._loaded = loaded
        self.spared: tuple[Placement, ...] = ()
        self._first_goes = False  # whether the load replaces the model for requests that name none

    @contextmanager
    def keeping(self, stays: tuple[Placement, ...]) -> Iterator[None]:
        """Keep these placements loaded while the block runs. Call this with the lock held."""
        before = self.spared, self._first_goes
        self.spared, self._first_goes = stays, self._loaded.first not in stays
        try:
            yield
        finally:
            self.spared, self._first_goes = before

    def may_replace(self, running: Placement, *, by_name: bool) -> bool:
        """Return whether the load in progress may replace the placement that a request is about to use.

        by_name: whether the request names the model.
        """
        stays = running in self.spared and (by_name or not self._first_goes)
        return self.locked() and not stays


@dataclass(slots=True, eq=False)
class Load:
    """A load that is waiting or running. `model` is the requested name, and later the full name."""

    model: str
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)


class LoadQueue:
    """The loads of one host. `lock` lets only one run at a time."""

    def __init__(self, loaded: LoadedModels, journal: Journal) -> None:
        self.lock, self._journal = LoadLock(loaded), journal
        self._under_way: list[Load] = []
        self._closed = False

    def __len__(self) -> int:
        return len(self._under_way)

    async def run(self, load: Load, work: Coroutine[Any, Any, T]) -> T:
        """Run a load and return its result. `stop` and `close` can end the load while it waits, hashes files or opens
        stages."""
        if self._closed:
            work.close()
            raise StageLost("node_stops")
        self._under_way.append(load)
        try:
            return await run_until(load.stop, work, StageLost("load_stopped", model=load.model))
        except AppError as error:
            self._journal.note(Reason("log_model_failed", {"model": load.model, "why": error.reason}))
            raise
        except asyncio.CancelledError:
            self._journal.note(Reason("log_model_stopped", {"model": load.model}))
            raise
        finally:
            self._under_way.remove(load)
            load.over.set()

    def stop(self, name: str | None = None) -> list[asyncio.Event]:
        """Stop the loads of this model, or all loads. Return an event for each load, set when the load has ended."""
        ending = [load for load in self._under_way if name in (None, load.model)]
        for load in ending:
            load.stop.set()
        return [load.over for load in ending]

    def close(self) -> None:
        """Stop all loads and refuse new ones."""
        self._closed = True
        self.stop()


class LoadRetries:
    """Decides whether and how to retry a failed load, and which error explains the final failure."""

    def __init__(self, model: str) -> None:
        self._model = model
        self.limits: dict[MachineId, int] = {}  # bytes that lenders really have free
        self._failed: dict[MachineId, Reason] = {}  # excluded machines and the reasons
        self.lost: Loss | None = None  # the loss that made the last try fail
        self._machines: list[str] = []  # names of the machines of the last try
        self._n = 0
        self._error: AppError | None = None  # error of the last try
        self._may_repeat = True  # whether the same machines may be used again if necessary
        self._no_memory: DoesNotFit | None = None  # an error that states no number of bytes
        self._harmed: set[str] = set()  # other machines on which the model caused errors

    def begin(self, plan: Plan) -> None:
        """Record the machines that the next try uses."""
        self.lost, self._machines = None, list(dict.fromkeys(stage.name for stage in plan.stages))

    def should_retry(self, error: AppError) -> bool:
        """Record the error of a try. Return whether another try might succeed."""
        self._n += 1
        before, self._error = self._error, error
        if isinstance(error, DoesNotFit):
            is_worth_it = self._may_fit(error)
        elif isinstance(error, StageLost | Unreachable | Refused):
            self._may_repeat = is_worth_retrying(error, before)
            is_worth_it = self._goes_elsewhere(error) or self._may_repeat
        else:
            is_worth_it = False
        return is_worth_it and self._n <= MAX_RECOVERIES

    @property
    def without(self) -> frozenset[MachineId]:
        """The machines that failed, which the next try avoids."""
        return frozenset(self._failed)

    def explained(self, plan: Plan) -> Plan:
        """Add to the plan the reasons why machines were left out."""
        return replace(plan, reasons=(*plan.reasons, *self._failed.values()))

    def events(self, plan: Plan) -> list[Reason]:
        """Return a journal entry for each machine that failed. Called once the model is loaded without them."""
        used = {stage.machine for stage in plan.stages}
        return [
            Reason("log_machine_failed", {"model": self._model, **why.facts})
            for machine, why in self._failed.items()
            if machine not in used
        ]

    def check_may_repeat(self) -> None:
        """Raise the last error again if the next try would use machines that failed and would fail the same way."""
        if self._error is not None and self.without and not self._may_repeat:
            self._n = MAX_RECOVERIES
            raise self._error

    def final_error(self, error: AppError) -> AppError:
        """Return the error that explains why the model could not be loaded.

        A failure on one other machine does not prove that the file is damaged. Either may be at fault, so the error
        names both.
        """
        if self._no_memory is not None and isinstance(error, DoesNotFit):
            return self._no_memory
        code, other = fault_table.cause_code(error.reason), self._other(error)
        if code not in OF_THE_FILE or len(self._harmed) >= ENOUGH_MACHINES:
            return blame_model(error, self._model)
        if other is not None:
            return StageFailed("model_fails_there", model=self._model, machine=other.name)
        if code == "numbers_not_finite" and len(self._machines) > 1:
            names = " and ".join(self._machines)
            return StageFailed("model_not_finite_over", model=self._model, machines=names)
        return blame_model(error, self._model)

    def _other(self, error: AppError) -> Loss | None:
        """Return the loss of another machine that caused the error, if there is one."""
        lost = self.lost
        return lost if lost is not None and lost.machine and lost.why == error.reason else None

    def _goes_elsewhere(self, error: AppError) -> bool:
        """Exclude the other machine that caused the error if this might help, and return whether it was excluded."""
        if (other := self._other(error)) is None:
            return False
        is_by_model = may_be_fault_of_model(error)
        if is_by_model:
            self._harmed.add(other.machine)
        if len(self._harmed) >= ENOUGH_MACHINES:  # the model is at fault
            self._may_repeat = False
            return False
        if is_by_model or fault_table.classify(error.reason).retry in (Retry.ELSEWHERE, Retry.ONCE):
            words = error.reason.facts.get("what") if error.reason.code == "lender_said" else None
            facts: dict[str, Fact] = {"machine": other.name, "why": words or error.reason}
            self._failed[MachineId(other.machine)] = Reason("left_out_failed", facts)
            return True
        return False

    def _may_fit(self, error: DoesNotFit) -> bool:
        """Return whether the next plan might fit, because it will use more recent figures for the free memory of
        this host or of a lender.
        """
        if error.reason.code in ("beside_no_room", "card_family_no_room", "card_short_no_room"):
            return True
        short = short_lender(error)
        if short is None or short[0] in self.limits:
            return False
        if "free_bytes" not in error.reason.facts:  # the error of the next plan could not state what was missing
            self._no_memory = error
        self.limits |= dict([short])
        return True


def blame_model(error: AppError, model: str) -> AppError:
    """Return an error that blames the model if its file made the engine fail, otherwise the original error."""
    code = OF_THE_FILE.get(fault_table.cause_code(error.reason))
    return StageFailed(code, model=model) if code else error


def may_be_fault_of_model(error: AppError) -> bool:
    """Return whether the model may have caused this error. The error must have occurred before the model's first
    request.
    """
    return fault_table.classify(Reason(fault_table.cause_code(error.reason))).fault in (Fault.MODEL, Fault.ENGINE)


def is_worth_retrying(error: AppError, before: AppError | None = None) -> bool:
    """Return whether loading again on the same machines might succeed. `before` is the error of the previous try."""
    if _may_be_chance(error):
        return before is None or not _may_be_chance(before)
    entry = fault_table.classify(error.reason)
    return entry.fault in (Fault.MACHINE, Fault.LINK) and entry.retry is not Retry.NEVER


def _may_be_chance(error: AppError) -> bool:
    """Return whether the error may be transient.

    The caller retries such an error only once, because detecting a hang takes minutes.
    """
    is_hung = fault_table.cause_code(error.reason) == "worker_hung"
    return is_hung or fault_table.classify(error.reason).retry is Retry.ONCE


def short_lender(error: DoesNotFit) -> tuple[MachineId, int] | None:
    """Return the lender that had too little memory, and its free bytes (0 if unknown), or None for any other error."""
    facts = error.reason.facts
    machine = facts.get("machine_id")
    if error.reason.code != "lender_said" or machine is None:
        return None
    return MachineId(str(machine)), max(0, int(error.reason.number("free_bytes")))


async def wait_for_cards(graphics: ComputingCard, report: Report, wait_seconds: float = WAIT_SECONDS) -> None:
    """Wait until it is known whether a card can compute, but no longer than `wait_seconds`."""
    if await _is_tested(graphics, SHOWN_AFTER_SECONDS):
        return
    report(Progress("testing_card", None, 0, 1, "steps"))
    if await _is_tested(graphics, wait_seconds):
        report(Progress("testing_card", None, 1, 1, "steps"))


async def _is_tested(graphics: ComputingCard, within_seconds: float) -> bool:
    try:
        async with asyncio.timeout(within_seconds):
            await graphics.tested()
    except TimeoutError:
        return False
    return True
