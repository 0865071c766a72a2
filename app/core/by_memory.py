"""The placement by memory alone, for machines that were not measured yet. Pure.

One machine if the model fits there, otherwise the fewest lenders, filled evenly.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.core.errors import Reason
from app.core.model import Model
from app.core.placement import Candidate, Plan, PlannedStage, Workload
from app.core.room import stage
from app.core.shortage import does_not_fit
from backends.contract import Layers, Role


def plan_by_memory(
    host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload
) -> Plan:
    """Place the model. Raises DoesNotFit with what would help."""
    alone = stage(host, Role.WHOLE, Layers(0, model.n_layers), model, workload)
    if alone.total_bytes <= host.lends_bytes:
        return Plan((alone,), workload, (Reason("plan_fits_host", {"machine": host.name}),))
    ranked = sorted(lenders, key=lambda lender: (-lender.lends_bytes, lender.name, lender.id))
    for n_lenders in range(1, len(ranked) + 1 if model.boundaries else 1):
        stages = _balanced(host, ranked[:n_lenders], model, workload)
        if stages:
            reason = Reason("plan_split", {"machine": host.name, "machines": n_lenders + 1})
            return Plan(stages, workload, (reason,))
    raise does_not_fit(host, lenders, model, workload)


def _balanced(
    host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload
) -> tuple[PlannedStage, ...]:
    """The legal cuts that fill the fullest machine least, or () when none fits. The host's first run
    is as short as it may be: its last run carries the head, and one long run beats two short ones."""
    start = min(model.boundaries)
    first = stage(host, Role.FIRST, Layers(0, start), model, workload)
    best: dict[int, tuple[float, tuple[PlannedStage, ...]]] = {start: (0.0, (first,))}
    for lender in lenders:
        reached: dict[int, tuple[float, tuple[PlannedStage, ...]]] = {}
        for begin, (fullest, stages) in best.items():
            for end in (edge for edge in model.boundaries if edge > begin):
                held = stage(lender, Role.MIDDLE, Layers(begin, end), model, workload)
                fill = max(fullest, held.total_bytes / max(lender.lends_bytes, 1))
                if fill <= 1.0 and (end not in reached or fill < reached[end][0]):
                    reached[end] = (fill, (*stages, held))
        best = reached
    return _with_last(host, best, model, workload)


def _with_last(
    host: Candidate,
    best: dict[int, tuple[float, tuple[PlannedStage, ...]]],
    model: Model,
    workload: Workload,
) -> tuple[PlannedStage, ...]:
    chosen: tuple[float, tuple[PlannedStage, ...]] = (1.0, ())
    for end, (fullest, stages) in best.items():
        last = stage(host, Role.LAST, Layers(end, model.n_layers), model, workload)
        on_host = stages[0].total_bytes + last.total_bytes
        fill = max(fullest, on_host / max(host.lends_bytes, 1))
        if fill <= 1.0 and (not chosen[1] or fill < chosen[0]):
            chosen = (fill, (*stages, last))
    return chosen[1]
