"""The whole state of a node as plain JSON: what `status` shows and the event stream begins with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from app.core.errors import Reason
from app.core.household.household import Household, Machine
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.forecast import way
from app.core.planner.placement import Candidate, Forecast, Plan, PlannedStage
from app.core.reasons import said, with_reason
from app.inference.pipeline.replica_set import Replica
from app.node.planning.forecast_history import forecast_alone
from backends.contract import KvType, Layers

Json = dict[str, Any]

CODE_AND_FACTS = {"code", "facts"}
REASON = CODE_AND_FACTS | {"sentence"}
LONG_QUESTION = 1_000  # tokens: what the wait for a first token is told for, whatever else is planned


def machine_json(machine: Machine, this: bool) -> Json:
    has_reason = machine.online and not (machine.only_uses and machine.lending == "paused")
    return {
        "id": machine.id,
        "name": machine.name,
        "this": this,
        "online": machine.online,
        "state": machine.state,
        **with_reason("reason", machine.reason or (machine.lending_reason if has_reason else None)),
        "doubted": machine.reason is not None and machine.reason.code == "machine_doubted",
        "device": machine.device,
        "hottest_c": machine.hottest_c if machine.online else None,
        "engine": machine.about.engine,
        "watts": machine.about.watts,
        "link_mbit": machine.about.link_mbit,
        "used_by": list(machine.about.used_by),
        "total_bytes": machine.total_bytes,
        "lent_bytes": machine.lends_bytes + machine.used_bytes,
        "used_bytes": machine.used_bytes,
        "roles": list(machine.roles),
        "address": machine.address,
        "layers": [run_json(run) for run in machine.layers],
        "seen_at": machine.seen_at,
    }


def machines_json(household: Household, me: MachineId) -> Json:
    """Every machine by its id."""
    return {
        key: machine_json(
            replace(
                machine,
                reason=machine.reason and household.today(machine.reason),
                lending_reason=machine.lending_reason and household.today(machine.lending_reason),
            ),
            key == me,
        )
        for key, machine in household.machines.items()
    }


def with_names(described: Any, household: Household) -> Any:
    """Return what was described at its placement, with the names that its machines have now."""
    if isinstance(described, list):
        return [with_names(part, household) for part in described]
    if not isinstance(described, dict):
        return described
    now = {key: with_names(part, household) for key, part in described.items()}
    if now.keys() == REASON:
        return reason_json(household.today(Reason.from_json(now)))
    if "machine" in now and (known := household.machines.get(now.get("id", ""))):
        now["machine"] = known.name
    for key, facts in list(now.items()):
        if key.endswith("_facts") and isinstance(facts, dict) and facts.keys() >= CODE_AND_FACTS:
            reason = household.today(Reason.from_json(facts))
            now[key] = {**facts, **reason.to_json()}
            now[key.removesuffix("_facts")] = said(reason)
    if "reasons" in now and "why" in now:  # of a plan: the same twice
        now["reasons"] = [explanation["sentence"] for explanation in now["why"]]
    return now


def with_limits(described: Json, host: Candidate, lenders: Iterable[Candidate] = ()) -> Json:
    """A plan as it was described when it was placed, with what those of its machines lend that are here now."""
    lends = {candidate.id: candidate.lends_bytes for candidate in (host, *lenders)}
    machines = [{**need, "lends_bytes": lends.get(need["id"], need["lends_bytes"])} for need in described["machines"]]
    return {**described, "machines": machines}


def run_json(run: Layers) -> list[int]:
    return [run.first, run.last]


def stage_json(stage: PlannedStage) -> Json:
    return {
        "machine": stage.name,
        "id": stage.machine,
        "role": str(stage.role),
        "first": stage.layers.first,
        "last": stage.layers.last,
        "weight_bytes": stage.weight_bytes,
        "kv_bytes": stage.kv_bytes,
        "work_bytes": stage.work_bytes,
    }


def plan_json(plan: Plan, model: Model, lends: dict[MachineId, int], advice: Sequence[Reason] = ()) -> Json:
    """A plan with every number behind it. `lends`: bytes each machine lends, by id."""
    needs: dict[MachineId, int] = {}
    for stage in plan.stages:
        needs[stage.machine] = needs.get(stage.machine, 0) + stage.total_bytes
    names = {stage.machine: stage.name for stage in plan.stages}
    return {
        "model": model.name,
        "shape": plan.topology,
        "context": plan.workload.context,
        "users": plan.workload.users,
        "kv": plan.workload.kv.value,
        "number": plan.workload.number.name.lower(),
        "kv_bytes": _kv_bytes(plan, model),
        "stages": [stage_json(stage) for stage in plan.stages],
        "machines": [
            {"machine": names[key], "id": key, "needs_bytes": need, "lends_bytes": lends[key]}
            for key, need in needs.items()
        ],
        "reasons": [said(reason) for reason in plan.reasons],
        "fits": True,
        "forecast": forecast_json(plan.forecast) if plan.forecast else None,
        "first_token": first_token_json(plan, model),
        "alternatives": [
            {
                "shape": alternative.topology,
                "machines": list(alternative.machines),
                **forecast_json(alternative.forecast),
            }
            for alternative in plan.alternatives
        ],
        "why": [reason_json(reason) for reason in plan.reasons],
        "advice": [reason_json(reason) for reason in advice],
        "from": facts_json(plan, model),
    }


def _kv_bytes(plan: Plan, model: Model) -> Json:
    """Return the size of the context on all machines together, by KV type."""
    work = plan.workload
    cells = work.context * work.users
    return {
        kind.value: model.kv_bytes(model.layers, cells, work.slots, kind)
        for kind in KvType
        if kind is KvType.F16 or model.quantised_kv
    }


def forecast_json(known: Forecast) -> Json:
    """Return the forecast of a placement. Times in seconds; `share` is of the time of a request."""
    slowest = known.bottleneck
    return {
        "ttft_s": known.ttft_s,
        "decode_tok_s": known.decode_tok_s,
        "together_tok_s": known.together_tok_s,
        "request_s": known.request_s,
        "estimated": known.estimated,
        "bottleneck": {"part": slowest.part, "machine": slowest.name, "id": slowest.machine, "share": slowest.share},
        "shares": [
            {
                "part": share.part,
                "machine": share.name,
                "id": share.machine,
                "busy_s": share.busy_s,
                "share": share.share,
            }
            for share in known.shares
        ],
    }


def first_token_json(plan: Plan, model: Model) -> Json | None:
    """Return the time until the answer to a long question begins; None if something was not measured."""
    prompt = min(LONG_QUESTION, plan.workload.context - 1)
    known = forecast_alone(plan, model, prompt, plan.workload.output)
    return {"prompt_tokens": prompt, "ttft_s": known.ttft_s} if known else None


def reason_json(reason: Reason) -> Json:
    """A sentence, and the numbers in it as they are."""
    return {**reason.to_json(), "sentence": said(reason)}


def trouble_json(reason: Reason | None) -> Json:
    """Return what is wrong with a loaded model, so that `with_names` can say it anew."""
    facts = reason_json(reason) if reason else None
    return {"reason": facts and facts["sentence"], "reason_facts": facts}


def facts_json(plan: Plan, model: Model) -> Json:
    """Return the basis of a plan: the typical request, and every machine and link as it was measured."""
    work = plan.workload
    token_bytes = work.number.row_bytes(model.width)
    chunk_bytes = token_bytes * work.batch_rows
    return {
        "prompt_tokens": work.prompt,
        "output_tokens": work.output,
        "batch_rows": work.batch_rows,
        "value_bytes": token_bytes / model.width,
        "machines": [
            {
                "machine": candidate.name,
                "id": candidate.id,
                "lends_bytes": candidate.lends_bytes,
                "speed": asdict(candidate.speed) if candidate.speed else None,
                "link": asdict(candidate.link) if candidate.link else None,
                "token_way_s": way(candidate.link, token_bytes)[0] if candidate.link else None,
                "chunk_way_s": way(candidate.link, chunk_bytes)[0] if candidate.link else None,
            }
            for candidate in plan.machines
        ],
    }


def model_json(model: Model, path: str, builtin: bool) -> Json:
    return {
        "name": model.name,
        "id": model.id,
        "architecture": model.architecture,
        "quantisation": model.quantisation,
        "n_layers": model.n_layers,
        "width": model.width,
        "n_vocab": model.n_vocab,
        "context_length": model.context_length,
        "file_bytes": model.file_bytes,
        "quantised_kv": model.quantised_kv,
        "licence": model.licence,
        "path": path,
        "splits": bool(model.cuts.boundaries),
        **with_reason("whole_reason", model.cuts.whole_reason),
        "builtin": builtin,
        "embeds": model.embeds,
        "writes": model.writes,
        "has_template": model.has_template,
        "ranks": model.ranks,
        "n_parameters": model.n_parameters,
    }


def replicas_json(replicas: Sequence[Replica], plan: Plan) -> list[Json]:
    """Each of several, as it stands now, with the machine whose name it has."""
    if not replicas:
        return []
    firsts = [part.stages[0].machine for part in plan.parts]
    return [_replica_json(replica, key) for replica, key in zip(replicas, firsts, strict=True)]


def _replica_json(replica: Replica, first: MachineId) -> Json:
    pipeline = replica.pipeline
    state = "lost" if pipeline.lost else "recovering" if pipeline.news else "ready"
    return {
        "machine": replica.name,
        "id": first,
        "ids": sorted(replica.machines),
        "state": "draining" if replica.draining and state == "ready" else state,
        "answering": pipeline.n_running,
        "waiting": pipeline.n_waiting,
    }
