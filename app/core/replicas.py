"""The whole model on every machine that has room for it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.errors import DoesNotFit, Reason
from app.core.forecast import forecast
from app.core.model import Model
from app.core.placement import Candidate, Plan, Workload
from app.core.room import stage
from backends.contract import Layers, Role


def holders(
    host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload
) -> list[Candidate]:
    """Who can hold all of it. The host always does: it alone has the vocabulary, for answers of a given form."""
    layers = Layers(0, model.n_layers)
    found = [
        machine
        for machine in (host, *lenders)
        if stage(machine, Role.WHOLE, layers, model, workload).total_bytes <= machine.lends_bytes
    ]
    return found if host in found and model.boundaries else []


def replicas_by_memory(
    host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload
) -> Plan:
    """One on each machine where it fits. Raises DoesNotFit for fewer than two."""
    found = holders(host, lenders, model, workload)
    if len(found) < 2:
        raise DoesNotFit("replicas_need_two", model=model.name, machine=host.name)
    layers = Layers(0, model.n_layers)
    stages = tuple(stage(one, Role.WHOLE, layers, model, workload) for one in found)
    known = forecast(stages, {one.id: one for one in found}, model, workload)
    facts: dict[str, str | int | float] = {"machines": len(found)}
    return Plan(stages, workload, (Reason("plan_replicas_chosen", facts),), known)
