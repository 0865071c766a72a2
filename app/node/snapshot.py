"""The whole state of a node as plain JSON: what `status` shows and the event stream begins with."""

from __future__ import annotations

from typing import Any

from app.core.errors import Reason
from app.core.household import Machine
from app.core.ids import MachineId
from app.core.model import Model
from app.core.plan import Plan, PlannedStage
from app.core.reasons import said
from backends.contract import Layers

Json = dict[str, Any]


def machine_json(machine: Machine, this: bool) -> Json:
    return {
        "id": machine.id,
        "name": machine.name,
        "this": this,
        "online": machine.online,
        "state": machine.state,
        "reason": sentence(machine.reason),
        "device": machine.device,
        "total_bytes": machine.total_bytes,
        "lent_bytes": machine.lends_bytes + machine.used_bytes,
        "used_bytes": machine.used_bytes,
        "roles": list(machine.roles),
        "address": machine.address,
        "layers": [run_json(run) for run in machine.layers],
    }


def run_json(run: Layers) -> list[int]:
    return [run.first, run.last]


def sentence(reason: Reason | None) -> str | None:
    return said(reason) if reason else None


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


def plan_json(plan: Plan, model: Model, lends: dict[MachineId, int]) -> Json:
    """A plan with every number behind it. `lends`: bytes each machine lends, by id."""
    needs: dict[MachineId, int] = {}
    for stage in plan.stages:
        needs[stage.machine] = needs.get(stage.machine, 0) + stage.total_bytes
    names = {stage.machine: stage.name for stage in plan.stages}
    return {
        "model": model.name,
        "shape": plan.shape,
        "context": plan.workload.context,
        "users": plan.workload.users,
        "stages": [stage_json(stage) for stage in plan.stages],
        "machines": [
            {"machine": names[key], "id": key, "needs_bytes": need, "lends_bytes": lends[key]}
            for key, need in needs.items()
        ],
        "reasons": [said(reason) for reason in plan.reasons],
        "fits": True,
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
        "licence": model.licence,
        "path": path,
        "splits": bool(model.boundaries),
        "whole_reason": sentence(model.whole_reason),
        "builtin": builtin,
    }
