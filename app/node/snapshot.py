"""Conversion of this node's values (machines, plans, replicas) to the types of app/api."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from app.api import plans
from app.api import snapshot as api
from app.api.chat_api import OtherServer
from app.core.errors import Fact, Reason
from app.core.household.household import Household, Machine
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.forecast import transfer_times
from app.core.planner.forecast_range import DISTURBED_LOAD, TOO_BUSY_LOAD, spread_of
from app.core.planner.placement import Candidate, Forecast, Plan, PlannedStage, processor_reasons
from app.core.planner.speed_estimates import is_too_small
from app.core.reasons import said, sentence
from app.inference.pipeline.replica_set import Replica
from app.node.planning.forecast_history import forecast_alone
from backends.contract import KvType

T = TypeVar("T")
P = TypeVar("P", bound=plans.Plan)

LONG_PROMPT_TOKENS = 1_000  # length of the prompt for which every plan forecasts the time to first token


def describe_machines(household: Household, me: MachineId) -> dict[str, api.Machine]:
    """Return descriptions of all machines, by ID."""
    return {key: _machine(machine, household, key == me) for key, machine in household.machines.items()}


def _machine(machine: Machine, household: Household, this: bool) -> api.Machine:
    has_reason = machine.online and not (machine.only_uses and machine.lending == "paused")
    why = machine.reason or (machine.lending_reason if has_reason else None)
    reason = household.with_current_names(why) if why else None
    return api.Machine(
        id=machine.id,
        name=machine.name,
        this=this,
        online=machine.online,
        state=machine.state,
        reason=sentence(reason),
        reason_facts=reason,
        doubted=machine.reason is not None and machine.reason.code == "machine_doubted",
        device=machine.device,
        hottest_c=machine.hottest_c if machine.online else None,
        engine=machine.about.engine,
        watts=machine.about.watts,
        link_mbit=machine.about.link_mbit,
        used_by=list(machine.about.used_by),
        total_bytes=machine.total_bytes,
        lent_bytes=machine.lends_bytes + machine.used_bytes,
        used_bytes=machine.used_bytes,
        roles=list(machine.roles),
        address=machine.address,
        layers=[(run.first, run.last) for run in machine.layers],
        seen_at=machine.seen_at,
    )


def with_current_names(described: T, household: Household) -> T:
    """Update the machine names in a described plan or loaded model."""
    renamed: Any = described
    match described:
        case list():
            renamed = [with_current_names(part, household) for part in described]
        case Reason():
            renamed = household.with_current_names(described)
        case plans.Explanation():
            renamed = explain(household.with_current_names(described.reason))
        case msgspec.Struct():
            renamed = _with_current_names(described, household)
    return renamed  # type: ignore[no-any-return]


def _with_current_names(described: msgspec.Struct, household: Household) -> msgspec.Struct:
    fields = {name: with_current_names(value, household) for name, value in msgspec.structs.asdict(described).items()}
    if "machine" in fields and (known := household.machines.get(fields.get("id", ""))):
        fields["machine"] = known.name
    for name, reason in list(fields.items()):
        if name.endswith("_facts") and isinstance(reason, Reason):
            fields[name.removesuffix("_facts")] = said(reason)
    if isinstance(described, plans.Plan):  # a plan contains its reasons twice
        fields["reasons"] = [explanation.sentence for explanation in fields["why"]]
    return type(described)(**fields)


def with_limits(described: P, host: Candidate, lenders: Iterable[Candidate] = ()) -> P:
    """Update the lent memory of each connected machine in a described plan."""
    candidates = (host, *lenders)
    lends = {candidate.id: candidate.lends_bytes for candidate in candidates}
    machines = [
        msgspec.structs.replace(need, lends_bytes=lends.get(MachineId(need.id), need.lends_bytes))
        for need in described.machines
    ]
    described = msgspec.structs.replace(described, machines=machines)
    if isinstance(described, plans.Plan):
        used = {need.id for need in machines}
        refused = [explain(reason) for reason in processor_reasons(candidates, used)]
        why = [*described.why, *(reason for reason in refused if reason not in described.why)]
        described = msgspec.structs.replace(described, why=why, reasons=[known.sentence for known in why])
    return described


def describe_stage(stage: PlannedStage, card: str = "") -> plans.Stage:
    return plans.Stage(
        stage.name,
        stage.machine,
        str(stage.role),
        stage.layers.first,
        stage.layers.last,
        stage.weight_bytes,
        stage.kv_bytes,
        stage.work_bytes,
        card,
    )


def describe_plan(plan: Plan, model: Model, lends: dict[MachineId, int], advice: Sequence[Reason] = ()) -> plans.Plan:
    """Return a description of a plan and the figures that it is based on. `lends` is the number of bytes that each
    machine lends."""
    needs: dict[MachineId, int] = {}
    for stage in plan.stages:
        needs[stage.machine] = needs.get(stage.machine, 0) + stage.total_bytes
    names = {stage.machine: stage.name for stage in plan.stages}
    return plans.Plan(
        model=model.name,
        shape=plan.topology,
        context=plan.workload.context,
        users=plan.workload.users,
        kv=plan.workload.kv.value,
        exact=plan.workload.exact,
        number=plan.workload.number.name.lower(),
        kv_bytes=_kv_bytes(plan, model),
        stages=[describe_stage(stage) for stage in plan.stages],
        machines=[plans.MachineNeed(names[key], key, need, lends[key]) for key, need in needs.items()],
        reasons=[said(reason) for reason in plan.reasons],
        forecast=describe_forecast(plan.forecast) if plan.forecast else None,
        first_token=first_token(plan, model),
        alternatives=[
            plans.Alternative(
                shape=alternative.topology,
                machines=list(alternative.machines),
                **msgspec.structs.asdict(describe_forecast(alternative.forecast)),
            )
            for alternative in plan.alternatives
        ],
        why=[explain(reason) for reason in plan.reasons],
        advice=[explain(reason) for reason in advice],
        facts=_plan_facts(plan, model),
        too_small=is_too_small(model.n_parameters),
    )


def _kv_bytes(plan: Plan, model: Model) -> dict[str, int]:
    """Return the total size of the KV cache on all machines, for each KV type."""
    work = plan.workload
    cells = work.context * work.users
    return {
        kind.value: model.kv_bytes(model.layers, cells, work.slots, kind)
        for kind in KvType
        if kind is KvType.F16 or model.quantized_kv
    }


def describe_forecast(known: Forecast) -> plans.Forecast:
    slowest = known.bottleneck
    return plans.Forecast(
        known.ttft_s,
        known.decode_tok_s,
        known.together_tok_s,
        known.request_s,
        known.estimated,
        plans.Bottleneck(slowest.part, slowest.name, slowest.machine, slowest.share),
        [plans.TimeShare(share.part, share.name, share.machine, share.busy_s, share.share) for share in known.shares],
        spread_of(known.decode_tok_s, estimated=known.estimated, other_load=known.other_load),
        known.busiest if known.other_load > DISTURBED_LOAD else "",
        known.other_load > TOO_BUSY_LOAD,
    )


def first_token(plan: Plan, model: Model) -> plans.FirstToken | None:
    """Return the forecast time to first token for a long prompt, or None if a part of the plan was not measured."""
    prompt = min(LONG_PROMPT_TOKENS, plan.workload.context - 1)
    known = forecast_alone(plan, model, prompt, plan.workload.output)
    return plans.FirstToken(prompt, known.ttft_s) if known else None


def with_servers(described: plans.Plan, servers: Iterable[OtherServer]) -> plans.Plan:
    """Return a plan that also names the other servers that have its model, each as a whole replica beside it."""
    having, why = list[plans.ServerSpeed](), list[plans.Explanation]()
    for server in servers:
        if described.model not in server.models:
            continue
        speed = server.speeds.get(described.model)
        if speed is None:
            having.append(plans.ServerSpeed(name=server.name))
            why.append(explain(Reason("plan_server_unmeasured", {"name": server.name})))
            continue
        best = speed.best
        having.append(
            plans.ServerSpeed(
                name=server.name,
                measured_at=speed.at,
                ttft_s=speed.ttft_s,
                decode_tok_s=speed.decode_tok_s,
                streams=best.streams,
                together_tok_s=best.tok_s,
            )
        )
        facts: dict[str, Fact] = {
            "name": server.name,
            "tok_s": speed.decode_tok_s,
            "ttft_s": speed.ttft_s,
            "streams": best.streams,
            "together_tok_s": best.tok_s,
        }
        why.append(explain(Reason("plan_server" if best.streams > 1 else "plan_server_single", facts)))
    all_of = [*described.why, *why]
    return msgspec.structs.replace(described, servers=having, why=all_of, reasons=[known.sentence for known in all_of])


def explain(reason: Reason) -> plans.Explanation:
    """Return a reason together with its sentence."""
    return plans.Explanation(reason.code, reason.facts, said(reason))


def _plan_facts(plan: Plan, model: Model) -> plans.PlanFacts:
    """Return the inputs of a plan: the typical request, and the measured speeds of its machines and links."""
    work = plan.workload
    token_bytes = work.number.row_bytes(model.width)
    chunk_bytes = token_bytes * work.batch_rows
    return plans.PlanFacts(
        work.prompt,
        work.output,
        work.batch_rows,
        token_bytes / model.width,
        [
            plans.PlannedMachine(
                candidate.name,
                candidate.id,
                candidate.lends_bytes,
                candidate.speed,
                candidate.link,
                transfer_times(candidate.link, token_bytes)[0] if candidate.link else None,
                transfer_times(candidate.link, chunk_bytes)[0] if candidate.link else None,
            )
            for candidate in plan.machines
        ],
    )


def describe_replicas(replicas: Sequence[Replica], plan: Plan) -> list[plans.Replica]:
    """Return the descriptions of a plan's replicas, each identified by its first machine."""
    if not replicas:
        return []
    firsts = [part.stages[0].machine for part in plan.parts]
    return [_replica(replica, key) for replica, key in zip(replicas, firsts, strict=True)]


def _replica(replica: Replica, first: MachineId) -> plans.Replica:
    pipeline = replica.pipeline
    state = "lost" if pipeline.lost else "recovering" if pipeline.news else "ready"
    return plans.Replica(
        replica.name,
        first,
        sorted(replica.machines),
        "draining" if replica.draining and state == "ready" else state,
        pipeline.n_running,
        pipeline.n_waiting,
    )
