"""The placement by memory alone, for machines that were not measured yet. Pure.

One machine if the model fits there and may be so placed, otherwise the fewest lenders, filled evenly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from app.core.errors import DoesNotFit, Reason
from app.core.model import Model
from app.core.planner.placement import Candidate, Plan, PlannedStage, Workload
from app.core.planner.shortage import does_not_fit
from app.core.planner.stage_memory import beside_layers, layer_bytes_to, split_stages, stage
from backends.contract import Layers, Role


class _Cut(NamedTuple):
    """Runs up to some layer: how full the fullest machine is, and where each run begins and the last ends."""

    fullest: float
    edges: tuple[int, ...]


def plan_by_memory(
    host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload, *, alone: bool = True
) -> Plan:
    """Place the model. alone: on the host, where it fits there; else it is split all the same.

    Raises DoesNotFit with what would help.
    """
    whole = stage(host, Role.WHOLE, Layers(0, model.n_layers), model, workload)
    fits = whole.total_bytes <= host.lends_bytes
    if fits and alone:
        return Plan((whole,), workload, (Reason("plan_fits_host", {"machine": host.name}),))
    ranked = sorted(lenders, key=lambda lender: (-lender.lends_bytes, lender.name, lender.id))
    for n_lenders in range(1, len(ranked) + 1 if model.boundaries else 1):
        stages = _balanced(host, ranked[:n_lenders], model, workload)
        if stages:
            reason = Reason("plan_split", {"machine": host.name, "machines": n_lenders + 1})
            if fits:
                reason = Reason("plan_split_chosen", {"machines": n_lenders + 1})
            return Plan(stages, workload, (reason,))
    if fits:
        raise DoesNotFit("shape_not_split", model=model.name)
    raise does_not_fit(host, lenders, model, workload)


def _balanced(
    host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload
) -> tuple[PlannedStage, ...]:
    """The legal cuts that fill the fullest machine least, or () when none fits. The host's first run
    is as short as it may be: its last run carries the head, and one long run beats two short ones."""
    boundaries, to = sorted(model.boundaries), layer_bytes_to(model, workload)
    beside = beside_layers(Role.MIDDLE, model, workload)
    start = next(edge for edge in boundaries if model.runs.allow(Layers(0, edge)))
    best: dict[int, _Cut] = {start: _Cut(0.0, (0, start))}  # by where the last run so far ends
    for lender in lenders:
        reached: dict[int, _Cut] = {}
        for begin, cut in best.items():
            for end in boundaries[bisect_right(boundaries, begin) :]:
                held = beside + to[end] - to[begin]
                if held > lender.lends_bytes:
                    break
                if not model.runs.allow(Layers(begin, end)):
                    continue
                fill = max(cut.fullest, held / lender.lends_bytes)
                if end not in reached or fill < reached[end].fullest:
                    reached[end] = _Cut(fill, (*cut.edges, end))
        best = reached
    ends = beside_layers(Role.FIRST, model, workload) + beside_layers(Role.LAST, model, workload)
    fitting = []
    for end, cut in best.items():
        on_host = ends + to[start] + to[-1] - to[end]
        legal = model.runs.allow(Layers(end, model.n_layers))
        if legal and on_host <= host.lends_bytes:
            fitting.append(_Cut(max(cut.fullest, on_host / host.lends_bytes), cut.edges))
    if not fitting:
        return ()
    edges = (*min(fitting, key=lambda cut: cut.fullest).edges, model.n_layers)
    return split_stages([host, *lenders, host], edges, model, workload)
