"""Planning: turns a request to load a model into a plan for the machines that are connected now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from app.api import requests
from app.catalog.shelf import Entry
from app.core.errors import AppError, BadInput, Reason
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.placement import (
    ALL_TOPOLOGIES,
    LEAST_SLOTS,
    Forecast,
    Plan,
    PlannedStage,
    Topology,
    Workload,
    processor_reasons,
)
from app.core.planner.plan import eligible_machines, plan, plan_with_wire
from app.core.planner.speed_estimates import SpeedConditions
from app.core.planner.stage_memory import StateCosts, keep_rule, room_for_states
from app.inference.stages.stage_client import Run
from app.machine.hardware import devices
from app.machine.hardware.added_engines import LABELS
from app.machine.hardware.cards import Card, why_no_card
from app.machine.hardware.cores import Threads
from app.machine.hardware.devices import memory_copy_s_per_byte
from app.network import messages
from app.node.planning.planner_inputs import PlannerInputs, Speeds
from backends.contract import (
    APPLE,
    DEFAULT_CHECKPOINTS,
    KV_CELL_ALIGNMENT,
    LLAMACPP,
    PYTORCH,
    CheckpointRule,
    KvType,
    NumberFormat,
    StageConfig,
    can_separate_slots,
)

CONTEXT = 4096  # default length of prompt and answer together
LEAST_CONTEXT = 2  # one prompt token and one output token
USERS = 1
BATCH_ROWS = 64
TOPOLOGY_OF = {"one": Topology.ONE_MACHINE, "split": Topology.SPLIT, "replicas": Topology.REPLICAS}
NUMBER_NAMES = {NumberFormat.F32: "f32", NumberFormat.F16: "f16", NumberFormat.Q8: "q8"}
NUMBERS = {"auto": NumberFormat.F16, "f16": NumberFormat.F16, "f32": NumberFormat.F32, "q8": NumberFormat.Q8}
MS = 1000


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that all stages of a placement share."""

    number: NumberFormat
    slots: int
    kv_cells: int
    context: int
    batch_rows: int
    threads: Threads  # threads of this machine's worker
    kv: KvType = KvType.F16
    keep: CheckpointRule = DEFAULT_CHECKPOINTS
    exact: bool = False
    engine: str = ""  # that the person chose; "" leaves it to the owner of each machine
    picture_rows: int = 0  # rows of a picture that are computed in one step, if there are more than `batch_rows`

    @property
    def step_rows(self) -> int:
        """Return the maximum number of rows in a step for which the stages reserve memory."""
        return max(self.batch_rows, self.picture_rows)

    def config(
        self, stage: PlannedStage, entry: Entry, path: str, card: Card | None = None, *, compared: bool = False
    ) -> StageConfig:
        """Return the configuration of a stage that runs in this machine's own worker.

        compared: whether to compare the card's results with the processor's first.
        """
        return StageConfig(
            engine=LLAMACPP,
            path=path,
            embedding_path=entry.path,
            role=stage.role,
            layers=stage.layers,
            width=entry.model.width,
            slots=self.slots,
            kv_cells=self.kv_cells,
            batch_rows=self.step_rows,
            threads=self.threads.most,
            begin_threads=self.threads.begin,
            apart=can_separate_slots(self.slots, self.kv_cells, self.context),
            traits=entry.model.cuts.traits(stage.role),
            kv=self.kv,
            keep=self.keep,
            device=card.name if card else "",
            library=str(card.library) if card else "",
            compared=compared,
            exact=self.exact,
        )

    def open_message(self, stage: PlannedStage, model: Model, run: Run, manifest: str) -> messages.OpenStage:
        """Return the message that opens the stage on a lender."""
        return messages.OpenStage(
            request=0,
            pipeline=run.pipeline.hex(),
            epoch=run.epoch,
            model=model.name[:200],
            manifest=manifest,
            first=stage.layers.first,
            last=stage.layers.last,
            n_layers=model.n_layers,
            width=model.width,
            number=NUMBER_NAMES[self.number],  # type: ignore[arg-type]
            slots=self.slots,
            kv_cells=self.kv_cells,
            context=self.context,
            batch_rows=self.step_rows,
            engine=LLAMACPP,
            kv=self.kv,
            kept_states=self.keep.marks,
            kept_rows=self.keep.least_rows,
            exact=self.exact,
            chosen_engine=self.engine,  # type: ignore[arg-type]
        )


class RecurrentStateRule:
    """Decides which recurrent states a host saves, by comparing the cost of copying a state with that of
    processing the prompt again (app/core/planner/stage_memory.py).

    reading: returns the ratio of measured to forecast time for processing a model's prompts, or None if unknown.
    """

    def __init__(self, reading: Callable[[str], float | None]) -> None:
        self._byte_s, self._reading = 0.0, reading

    async def with_reason(self, plan: Plan, model: Model) -> Plan:
        """Add to the plan a reason that explains which recurrent states are saved, if the model has any."""
        if not model.state_bytes:
            return plan
        self._byte_s = self._byte_s or await asyncio.to_thread(memory_copy_s_per_byte)
        return replace(plan, reasons=(*plan.reasons, _reason(self._costs(plan, model))))

    def keep(self, plan: Plan, model: Model) -> CheckpointRule:
        """Return the rule for saving states, which applies to all stages of the plan."""
        return keep_rule(self._costs(plan, model)) if model.state_bytes else DEFAULT_CHECKPOINTS

    def _costs(self, plan: Plan, model: Model) -> StateCosts:
        known, row_s = plan.forecast, None
        if known is not None:
            row_s = known.ttft_s / plan.workload.prompt * (self._reading(model.name) or 1.0)
        room = room_for_states(plan, model.state_bytes)
        return StateCosts(sum(model.state_bytes), self._byte_s, row_s, room)


def _reason(costs: StateCosts) -> Reason:
    rule = keep_rule(costs)
    if not rule.marks:
        return Reason("states_no_room", {"state_bytes": costs.state_bytes})
    facts = {"state_bytes": costs.state_bytes, "ms": round(MS * costs.copy_s, 2)}
    if costs.row_s is None:
        return Reason("states_kept", {**facts, "states": rule.marks})
    replay_ms = round(MS * costs.row_s, 2)
    return Reason("states_by_cost", {**facts, "rows": rule.least_rows, "row_ms": replay_ms, "states": rule.marks})


# The engines by their names in requests
ENGINE_NAMES = {"": "", "llamacpp": LLAMACPP, "pytorch": PYTORCH, "mlx": APPLE}


def speed_conditions(order: requests.PlanModel) -> SpeedConditions:
    """Return the conditions under which speeds must be measured for the plan of this order."""
    return SpeedConditions(BATCH_ROWS, bool(order.exact), engine=ENGINE_NAMES[order.engine])


class Planner:
    """The planner of one host. `threads` is the number of threads of its own worker."""

    def __init__(self, planner_inputs: PlannerInputs, threads: Threads) -> None:
        self._planner_inputs, self._threads = planner_inputs, threads
        self._states = RecurrentStateRule(planner_inputs.forecasts.reading_ratio)

    async def plan(
        self,
        model: Model,
        order: requests.PlanModel,
        released: Mapping[MachineId, int],
        speeds: Speeds,
        limits: Mapping[MachineId, int] | None = None,
        topologies: frozenset[Topology] = ALL_TOPOLOGIES,
    ) -> Plan:
        """Return the plan for a request. `limits`: free bytes reported by lenders that refused. Raises DoesNotFit or
        BadInput."""
        if not model.writes:
            raise BadInput("model_only_embeds", name=model.name)
        host, lenders = self._planner_inputs.machines(released, speeds, model.family)
        if host.id in order.without:
            raise BadInput("host_not_left_out", machine=host.name)
        if order.anyway:
            total = devices.memory().total_bytes
            host = replace(host, lends_bytes=max(host.lends_bytes, total), past_limit_bytes=None)
        known = eligible_machines(host, [candidate for candidate in lenders if candidate.id not in order.without])
        lenders = list(known.lenders)
        for place, lender in enumerate(lenders):
            most = (limits or {}).get(lender.id, lender.lends_bytes)
            lenders[place] = replace(lender, lends_bytes=min(most, lender.lends_bytes))
        context = min(order.context or CONTEXT, model.context_length)
        if order.context and order.context < LEAST_CONTEXT:
            raise BadInput("context_too_short", asked=order.context, least=LEAST_CONTEXT)
        if order.context and order.context > model.context_length:
            raise BadInput("context_too_long", asked=order.context, most=model.context_length)
        users = order.users or USERS
        if users >= LEAST_SLOTS:  # each slot has its own cells, allocated in whole steps
            context = min(-(-context // KV_CELL_ALIGNMENT) * KV_CELL_ALIGNMENT, model.context_length)
        if order.kv is not KvType.F16 and not model.quantized_kv:
            raise BadInput("kv_odd", model=model.name, kv=order.kv)
        work = Workload(
            context,
            users,
            BATCH_ROWS,
            number=NUMBERS[order.number],
            kv=order.kv,
            exact=bool(order.exact),
            engine=ENGINE_NAMES[order.engine],
        )
        host, lenders = self._planner_inputs.with_measured_work(host, lenders, model, work)
        if order.shape in ("one", "split") and order.split is not None:
            raise BadInput("shape_and_split")
        topologies = frozenset({TOPOLOGY_OF[order.shape]}) if order.shape else topologies
        # takes up to a second for ten machines, which would delay the heartbeats of the event loop
        try:
            chosen = await asyncio.to_thread(
                plan_with_wire if order.number == "auto" else plan,
                host,
                lenders,
                model,
                work,
                order.split,
                topologies=topologies,
            )
        except AppError as error:
            raise known.explain(error) from error
        used = {stage.machine for stage in chosen.stages}
        on_processor = processor_reasons(chosen.machines, used)
        if host.id in used and (why := why_no_card(self._planner_inputs.graphics, host.name)) is not None:
            on_processor.append(why)
        by_choice = (*(exactness(chosen) if order.exact else ()), *engine_reason(order))
        guesses = self._planner_inputs.guesses
        gained = guesses.reasons(chosen, model.name) if guesses is not None else ()
        chosen = replace(chosen, reasons=(*chosen.reasons, *gained, *by_choice, *on_processor, *known.reasons))
        if order.by_program:
            chosen = replace(chosen, reasons=tuple(map(_chosen_by_program, chosen.reasons)))
        chosen = with_forecast_basis(chosen, self._planner_inputs.why_not_forecast(model) if speeds else None)
        chosen = with_unmeasured_causes(chosen, self._planner_inputs.why_not_measured)
        return await self._states.with_reason(chosen, model)

    def sizes(self, chosen: Plan, order: requests.LoadModel, model: Model) -> Sizes:
        """Return the sizes that all stages of the plan share."""
        work, projector = chosen.workload, model.projector
        rows = projector.picture_rows if projector is not None else 0
        return Sizes(
            number=work.number,
            slots=work.slots,
            kv_cells=max(work.context * work.users, work.batch_rows, rows),  # at least one full step
            context=work.context,
            batch_rows=work.batch_rows,
            threads=self._threads,
            kv=work.kv,
            keep=self._states.keep(chosen, model),
            exact=work.exact,
            engine=work.engine,
            picture_rows=rows,
        )


def engine_reason(order: requests.PlanModel) -> tuple[Reason, ...]:
    """Return a reason that says which engine the person chose, if one."""
    if not order.engine:
        return ()
    name = ENGINE_NAMES[order.engine]
    if name == LLAMACPP or order.exact:
        return (Reason("plan_chosen_llamacpp"),)
    return (Reason("plan_chosen_engine", {"engine": LABELS[name]}),)


def exactness(chosen: Plan) -> tuple[Reason, ...]:
    """Return the notes on reproducible results for a plan whose machines all use the same processor instructions."""
    used = {stage.machine for stage in chosen.stages}
    if any(machine.card_bytes is not None for machine in chosen.machines if machine.id in used):
        return (Reason("plan_exact_cards"),)
    return (Reason("plan_exact"),) if len(used) > 1 else ()


def _chosen_by_program(reason: Reason) -> Reason:
    return Reason("plan_forced_by_program") if reason.code == "plan_forced" else reason


def with_forecast_basis(chosen: Plan, unforecast: Reason | None) -> Plan:
    """Add to the plan a reason that states what its forecast is based on, or why there is no forecast."""
    if chosen.forecast is not None:
        return replace(chosen, reasons=(*chosen.reasons, Reason(_basis(chosen, chosen.forecast))))
    if unforecast is None:
        return chosen
    other_reasons = (reason for reason in chosen.reasons if reason.code != "plan_unmeasured")
    return replace(chosen, reasons=(*other_reasons, unforecast))


def _basis(chosen: Plan, forecast: Forecast) -> str:
    if forecast.estimated:
        return "plan_estimated"
    return "plan_measured_links" if len(chosen.machines) > 1 else "plan_measured"


def with_unmeasured_causes(chosen: Plan, why: Callable[[str], Reason | None]) -> Plan:
    """Add to the plan, for each unmeasured machine, the reason why it could not be measured."""
    reasons = []
    for reason in chosen.reasons:
        cause = why(str(reason.facts["machine"])) if reason.code == "plan_unmeasured" else None
        facts = {"machine": reason.facts["machine"], "why": cause} if cause else {}
        reasons.append(Reason("plan_unmeasurable", facts) if cause else reason)
    return replace(chosen, reasons=tuple(reasons))


def lent_bytes_by_machine(chosen: Plan) -> dict[MachineId, int]:
    """Return how many bytes each machine lends, for all machines that the plan considered."""
    return {machine.id: machine.lends_bytes for machine in chosen.machines}
