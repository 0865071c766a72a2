"""Measurement of each machine's speed with a model: on this machine, on lenders, and for other hosts."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from app.api.models import Speeds
from app.api.plans import Progress
from app.api.requests import MeasureModel
from app.catalog.families.effort_reader import effort_of, main_kind, stand_in_effort, stand_in_shape
from app.catalog.families.family_table import FAMILIES, window_layers
from app.catalog.gguf.gguf_file import Header
from app.catalog.gguf.model_shape_reader import shape_of
from app.catalog.shelf import Entry, Shelf
from app.catalog.stages import synthetic_stage
from app.core.errors import AppError, BadInput, Reason, Refused, StageLost
from app.core.household.household import Household
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.ids import MachineId
from app.core.model import Model, ModelShape
from app.core.planner.forecast_range import DISTURBED_LOAD
from app.core.planner.speed_estimates import Effort, MeasuredLayer, Speed, SpeedConditions, estimate_speed
from app.core.reasons import said
from app.core.recovery import fault_table
from app.inference.worker.layer_benchmark import DEPTH
from app.network import messages
from app.node.control.json_bodies import Report
from app.node.lending.stage_uploads import redacted_facts
from app.node.planning.local_speed import Cooldown, LocalSpeed

log = logging.getLogger(__name__)

WITHIN_S = 60.0  # a plan is made without the machines that take longer
RETRY_S = 1.0  # delay before asking again after a "busy" reply
SILENT_S = 600.0  # time for which a machine that did not reply in time is not asked again
MOST_REQUEST = 1 << 30  # request numbers wrap around here


Send = Callable[[messages.Message], Awaitable[None]]
Answer = messages.SpeedMeasured | messages.SpeedRefused


@dataclass(frozen=True, slots=True)
class SpeedBasis:
    """The layers to measure for a model. If `shape` describes a stand-in, `effort` describes the model's own layers."""

    shape: ModelShape
    effort: Effort | None = None
    # effort of windowed layers among the measured ones, to split the cost of earlier positions
    near: Effort | None = None
    instead: SpeedBasis | None = None  # for machines without enough memory to measure the model's own layers

    @property
    def is_estimate(self) -> bool:
        return self.effort is not None

    def speed(self, measured: Speed | None, batch_rows: int) -> Speed | None:
        """Return the model's speed, derived from the measured speed."""
        if measured is not None and self.near is not None:
            return with_windowed_cost(measured, self.near)
        if measured is None or self.effort is None:
            return measured
        like = MeasuredLayer(measured, stand_in_effort(self.shape), batch_rows)
        return estimate_speed(like, self.effort)


def speed_basis(header: Header, model: Model) -> SpeedBasis:
    """Return the layers to measure for a model: its own layers or, if they are too large to synthesize on any
    machine, a plain layer instead.

    Raises BadInput with the reason why the model's speed cannot be forecast.
    """
    plain = _plain_layer(header, model)
    try:
        shape = shape_of(header, model)
        synthetic_stage.check(shape)
    except BadInput:
        if isinstance(plain, BadInput):
            raise plain from None
        return plain
    if isinstance(plain, BadInput):
        return SpeedBasis(shape)
    near = plain.effort if any(window_layers(header, FAMILIES[model.architecture]) or ()) else None
    return SpeedBasis(shape, near=near, instead=plain)


def _plain_layer(header: Header, model: Model) -> SpeedBasis | BadInput:
    """Return a plain layer as a stand-in for the model's layers, or an error that explains why there is none."""
    try:
        effort = effort_of(header, model)
    except BadInput as error:
        return error
    return SpeedBasis(stand_in_shape(main_kind(header, model)), effort)


def with_windowed_cost(measured: Speed, effort: Effort) -> Speed:
    """Divide the measured cost of earlier positions between full attention and windowed attention, which covers only
    the last window. Layers of both kinds were measured with up to DEPTH positions."""
    near = min(effort.window, DEPTH) / DEPTH
    looked = effort.position + near * effort.window_position
    if not looked:
        return measured
    full, in_window = effort.position / looked, effort.window_position / looked
    return replace(
        measured,
        processor=measured.processor and with_windowed_cost(measured.processor, effort),
        position_s=full * measured.position_s,
        chunk_position_s=full * measured.chunk_position_s,
        window=effort.window,
        window_position_s=in_window * measured.position_s,
        window_chunk_position_s=in_window * measured.chunk_position_s,
    )


class LenderLink(Protocol):
    """The part of a link to a lender that a measurement uses."""

    async def send(self, message: messages.Message) -> None: ...


@dataclass(frozen=True, slots=True)
class SpeedRequest:
    """The layers to measure, and the callback for progress."""

    shape: ModelShape
    conditions: SpeedConditions
    report: Report

    def tell(self, machine: str | None, done: int, total: int) -> None:
        self.report(Progress("measuring", machine, done, total, "steps"))


class SpeedMeasurer:
    """Measures the speeds of all machines for the planner. Known speeds are not measured again."""

    def __init__(
        self, own: LocalSpeed, shelf: Shelf, link: Callable[[MachineId], LenderLink], group: asyncio.TaskGroup
    ) -> None:
        self._own, self._shelf, self._link, self._group = own, shelf, link, group
        self._request = 0
        self._waiting: dict[tuple[MachineId, int], asyncio.Future[Answer]] = {}
        self._lender_speeds: dict[tuple[MachineId, ModelShape, SpeedConditions], Speed] = {}  # the last reported speeds
        # speeds in `_valid` are used without asking again; those in `_doubted` must be measured again
        self._valid: set[tuple[MachineId, ModelShape, SpeedConditions]] = set()
        self._doubted: set[tuple[MachineId, ModelShape, SpeedConditions]] = set()
        self._cooldown = Cooldown()  # limits how often a speed is doubted
        self._answering: set[MachineId] = set()
        self._unforecast: dict[str, Reason] = {}  # by model ID
        self._failed: dict[str, Reason] = {}  # reason of the last failure, by machine name
        self._unanswered: dict[MachineId, int] = {}  # number of the unanswered request, by machine
        self._silent_until: dict[MachineId, float] = {}  # a late answer removes the entry

    async def speeds(
        self,
        entry: Entry,
        me: tuple[MachineId, str],
        lenders: Mapping[MachineId, str],
        conditions: SpeedConditions,
        report: Report,
        within_s: float = WITHIN_S,
        one_by_one: bool = False,
        known_only: bool = False,
    ) -> dict[MachineId, Speed | None]:
        """Return the speeds of this machine and of the lenders (names by ID) with this model. All machines measure
        at the same time.

        within_s: time limit per machine.
        one_by_one: measure one machine at a time, because nodes on the same computer would slow each other down.
        known_only: return only known speeds, without asking lenders or measuring.

        A speed is None if the machine did not reply in time, is busy, or cannot measure this model. No error is raised
        in these cases.
        """
        conditions = replace(conditions, family=entry.model.family)
        try:
            basis = await asyncio.to_thread(self._basis, entry)
        except AppError as error:
            log.info("%s cannot be measured: %s", entry.name, error.reason)
            self._unforecast[entry.model.id] = error.reason
            return dict.fromkeys((me[0], *lenders))
        return await self.speeds_like(basis, me, lenders, conditions, report, within_s, one_by_one, known_only)

    def why_not_forecast(self, model_id: str) -> Reason | None:
        """Return why a model's speed cannot be forecast, or None if it can be or if no forecast was requested."""
        return self._unforecast.get(model_id)

    def why_not_measured(self, name: str) -> Reason | None:
        """Return why the last measurement of a machine failed."""
        return self._failed.get(name)

    async def speeds_like(
        self,
        basis: SpeedBasis,
        me: tuple[MachineId, str],
        lenders: Mapping[MachineId, str],
        conditions: SpeedConditions,
        report: Report,
        within_s: float = WITHIN_S,
        one_by_one: bool = False,
        known_only: bool = False,
    ) -> dict[MachineId, Speed | None]:
        """Return the speeds for any model with this basis. The arguments and the result are those of `speeds`."""
        if known_only:
            everybody = (me[0], *lenders)
            return {key: await self._known(key, me[0], basis, conditions) for key in everybody}
        one_at_a_time = asyncio.Semaphore(1 if one_by_one else len(lenders) + 1)

        async def measured(machine: MachineId, name: str, of: SpeedBasis) -> Speed | None:
            question = SpeedRequest(of.shape, conditions, report)
            here = machine == me[0]
            work = self._here(name, question) if here else self._ask_lender(machine, name, question)
            return of.speed(await self._attempt(machine, name, work, within_s), conditions.batch_rows)

        async def known(machine: MachineId, name: str) -> Speed | None:
            async with one_at_a_time:
                speed = await measured(machine, name, basis)
                if speed is None and basis.instead is not None and self._had_no_room(name):
                    speed = await measured(machine, name, basis.instead)
                return speed

        async with asyncio.TaskGroup() as group:
            tasks = {
                key: group.create_task(known(key, name), name=f"measure {name}")
                for key, name in {me[0]: me[1], **lenders}.items()
            }
        return {key: task.result() for key, task in tasks.items()}

    async def table(
        self, order: MeasureModel, conditions: SpeedConditions, household: Household, me: MachineId, report: Report
    ) -> Speeds:
        """Return the speeds of all connected machines for the control API."""
        entry = await asyncio.to_thread(self._shelf.get, order.model)
        if not order.known_only:  # the user asked for this, so silent machines are asked again
            self._silent_until.clear()
        names = {
            key: machine.name
            for key, machine in household.machines.items()
            if key != me and machine.online and "lender" in machine.roles and not order.only_here
        }
        own = household.machines[me].name
        speeds = await self.speeds(
            entry, (me, own), names, conditions, report, one_by_one=order.one_by_one, known_only=order.known_only
        )

        failed = {
            key: self._failed[name]
            for key, name in {me: own, **names}.items()
            if speeds[key] is None and name in self._failed
        }
        return Speeds(
            model=entry.name,
            n_layers=entry.model.n_layers,
            batch_rows=conditions.batch_rows,
            speeds={str(key): speed for key, speed in speeds.items()},
            reasons={key: said(reason) for key, reason in failed.items()},
            reasons_facts={str(key): reason for key, reason in failed.items()},
        )

    @property
    def has_disturbed(self) -> bool:
        """Return whether other programs disturbed the measurement of a lender."""
        return any(speed.other_load > DISTURBED_LOAD for speed in self._lender_speeds.values())

    async def ask_disturbed(self) -> bool:
        """Ask lenders again for speeds whose measurement was disturbed. Lenders repeat these measurements when
        they are quiet. Return whether any speed has changed.
        """
        again = False
        for key, before in list(self._lender_speeds.items()):
            machine, shape, conditions = key
            if before.other_load <= DISTURBED_LOAD or key not in self._valid:
                continue
            question = SpeedRequest(shape, conditions, lambda _: None)
            after = await self._attempt(machine, machine, self._ask_anew(machine, machine, question), WITHIN_S)
            # meanwhile the speed may have been forgotten, doubted or measured again, and that prevails
            if after is None or key not in self._valid or self._lender_speeds.get(key) is not before:
                continue
            self._lender_speeds[key] = after
            again = again or after != before
        return again

    async def doubt(
        self, entry: Entry, conditions: SpeedConditions, me: MachineId, *, by_hand: bool = False
    ) -> set[MachineId]:
        """Mark the speeds behind a model's forecast as doubtful, so that the next request measures them again.

        Return the machines whose speeds were marked.

        by_hand: whether the user asks for this. Otherwise, the forecast was inaccurate.
        """
        try:
            basis = await asyncio.to_thread(self._basis, entry)
        except AppError:
            return set()
        if basis.is_estimate and not by_hand:
            return set()  # the error comes from the stand-in layers, so measuring again would not help
        shapes, conditions = [basis.shape], replace(conditions, family=entry.model.family)
        if by_hand and basis.instead is not None:  # some machines may have measured the stand-in
            shapes.append(basis.instead.shape)
        own = {me for shape in shapes if await self._own.doubt(shape, conditions, by_hand=by_hand)}
        doubted = {key for key in self._valid if key[1] in shapes and (by_hand or self._cooldown.is_over(key))}
        self._doubted |= doubted
        self._valid -= doubted
        for key in doubted:
            self._cooldown.start(key)
        return own | {machine for machine, _, _ in doubted}

    async def answer_request(self, member: Member, order: messages.MeasureSpeed, send: Send) -> None:
        """Answer a host's measurement request once the speed is known. Each member may have one request in progress."""
        if member.id in self._answering:
            reason = Reason("speed_busy")
        elif Role.HOST not in member.roles:
            reason = Reason("role_missing", {"name": member.name})
        else:
            self._answering.add(member.id)
            work = self._answer(member, order, send)
            self._group.create_task(work, name=f"measure for {member.name}")
            return
        await _send(send, self._refused(order, reason))

    def receive(self, machine: MachineId, answer: Answer) -> None:
        """Accept a lender's answer. Ignore an answer that nothing is waiting for."""
        if self._unanswered.get(machine) == answer.request:
            del self._unanswered[machine]
            self._silent_until.pop(machine, None)
        future = self._waiting.get((machine, answer.request))
        if future is not None and not future.done():
            future.set_result(answer)

    def link_lost(self, machine: MachineId, name: str) -> None:
        """Fail the pending requests to this machine, and treat its speeds as outdated, because it may return with
        another build of the engine.
        """
        for (of, _), future in self._waiting.items():
            if of == machine and not future.done():
                future.set_exception(StageLost("stage_unreachable", machine=name))
        self._valid = {key for key in self._valid if key[0] != machine}

    def card_changed(self, machine: MachineId) -> None:
        """Forget the speeds of a machine because the families that its graphics card computes have changed."""
        self._lender_speeds = {key: speed for key, speed in self._lender_speeds.items() if key[0] != machine}
        self._valid = {key for key in self._valid if key[0] != machine}

    async def _known(
        self, machine: MachineId, me: MachineId, basis: SpeedBasis, conditions: SpeedConditions
    ) -> Speed | None:
        """Return a machine's last measured speed, without measuring it again."""
        shape = basis.shape
        if machine == me:
            speed = await self._own.known(shape, conditions)
        else:
            speed = self._lender_speeds.get((machine, shape, conditions))
        if speed is None and basis.instead is not None:
            return await self._known(machine, me, basis.instead, conditions)
        return basis.speed(speed, conditions.batch_rows)

    def _had_no_room(self, name: str) -> bool:
        """Return whether the last measurement of a machine failed because the layers were too large."""
        why = self._failed.get(name)
        return why is not None and why.code == "speed_no_room"

    async def _attempt(
        self, machine: MachineId, name: str, work: Coroutine[Any, Any, Speed], within_s: float
    ) -> Speed | None:
        self._failed.pop(name, None)
        try:
            async with asyncio.timeout(within_s):
                return await work
        except TimeoutError:
            log.info("%s was not measured within %.0f s", name, within_s)
            if machine in self._unanswered:
                self._silent_until[machine] = time.monotonic() + SILENT_S
                self._failed[name] = Reason("speed_silent", {"machine": name})
        except AppError as error:
            log.info("%s was not measured: %s", name, error.reason)
            self._failed[name] = error.reason
        return None

    def _basis(self, entry: Entry) -> SpeedBasis:
        return speed_basis(self._shelf.header(entry), entry.model)

    async def _here(self, name: str, question: SpeedRequest) -> Speed:
        def tell(done: int, total: int) -> None:
            question.tell(name, done, total)

        return await self._own.for_user(question.shape, question.conditions, tell)

    async def _ask_lender(self, machine: MachineId, name: str, question: SpeedRequest) -> Speed:
        """Return a lender's speed. The lender is asked only if no valid speed is known. Raises StageLost, or
        Refused with the lender's reason.
        """
        key = (machine, question.shape, question.conditions)
        if key in self._valid:
            return self._lender_speeds[key]
        speed = await self._ask_anew(machine, name, question)
        self._doubted.discard(key)
        self._valid.add(key)
        self._lender_speeds[key] = speed
        question.tell(name, 1, 1)
        return speed

    async def _ask_anew(self, machine: MachineId, name: str, question: SpeedRequest) -> Speed:
        """Ask a lender for its speed, even if one is known. Raises Refused with the lender's reason, or StageLost."""
        key = (machine, question.shape, question.conditions)
        if time.monotonic() < self._silent_until.get(machine, -math.inf):
            raise Refused("speed_silent", machine=name)
        question.tell(name, 0, 1)
        while True:
            answer = await self._measure_remote(machine, question, again=key in self._doubted)
            if isinstance(answer, messages.SpeedMeasured):
                return _speed(answer)
            reason = fault_table.limited_to_sender(messages.received_reason(answer), name)
            if reason.code != "speed_busy":
                raise Refused(reason.code, **reason.facts)
            await asyncio.sleep(RETRY_S)

    async def _measure_remote(self, machine: MachineId, question: SpeedRequest, *, again: bool) -> Answer:
        self._request = (self._request + 1) % MOST_REQUEST
        waiting = (machine, self._request)
        self._unanswered[machine] = self._request
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[waiting] = future
        try:
            order = messages.MeasureSpeed(
                request=self._request,
                shape=question.shape,
                batch_rows=question.conditions.batch_rows,
                exact=question.conditions.exact,
                again=again,
                family=question.conditions.family,
                chosen_engine=question.conditions.engine,  # type: ignore[arg-type]
            )
            await self._link(machine).send(order)
            return await future
        except AppError:  # the machine is not connected, which is not silence
            self._unanswered.pop(machine, None)
            raise
        finally:
            del self._waiting[waiting]

    async def _answer(self, member: Member, order: messages.MeasureSpeed, send: Send) -> None:
        answer: Answer
        try:
            conditions = SpeedConditions(order.batch_rows, order.exact, order.family, order.chosen_engine)
            speed = await self._own.for_member(order.shape, conditions, again=order.again)
            answer = _measured(order, speed)
        except AppError as error:
            log.info("the measurement for %s was refused: %s", member.name, error.reason)
            answer = self._refused(order, error.reason)
        except Exception:  # an unexpected error must not end the node
            log.exception("a measurement for %s failed", member.name)
            answer = self._refused(order, Reason("bug"))
        finally:
            self._answering.discard(member.id)
        await _send(send, answer)

    def _refused(self, order: messages.MeasureSpeed, reason: Reason) -> messages.SpeedRefused:
        facts = messages.sent_facts(redacted_facts(reason, self._own.root))
        return messages.SpeedRefused(request=order.request, code=reason.code, facts=facts)


def _measured(order: messages.MeasureSpeed, speed: Speed) -> messages.SpeedMeasured:
    processor = messages.ProcessorSpeed(**_times(speed.processor)) if speed.processor else None
    return messages.SpeedMeasured(
        request=order.request, **_times(speed), other_load=speed.other_load, processor=processor
    )


def _times(speed: Speed) -> dict[str, float]:
    return {name: getattr(speed, name) for name in messages.ProcessorSpeed.__struct_fields__}


def _speed(answer: messages.SpeedMeasured) -> Speed:
    """Return the speed from the message. A false speed does little harm: the message type limits its values, and
    forecasts are compared with measured times."""
    processor = _without_head(answer.processor) if answer.processor else None
    return replace(_without_head(answer), other_load=answer.other_load, processor=processor)


def _without_head(answer: messages.SpeedMeasured | messages.ProcessorSpeed) -> Speed:
    return Speed(
        layer_s=answer.layer_s,
        layer_row_s=answer.layer_row_s,
        position_s=answer.position_s,
        chunk_s=answer.chunk_s,
        chunk_position_s=answer.chunk_position_s,
        step_s=answer.step_s,
        head_s=0.0,  # the output matrix runs on the host
        head_row_s=0.0,
    )


async def _send(send: Send, answer: Answer) -> None:
    with suppress(AppError):  # the host is gone
        await send(answer)
