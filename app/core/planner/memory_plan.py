"""Plans based on memory alone, for machines that were not measured, and suggestions for a model that does not fit.

The model is placed on one machine if it fits there and that is allowed. Otherwise it is split over the fewest possible
lenders, which are filled evenly. Each suggestion is verified by planning with it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from app.core.errors import DoesNotFit, Reason
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.placement import Candidate, Plan, PlannedStage, Workload
from app.core.planner.split_search import reachable_ends
from app.core.planner.stage_memory import (
    Grid,
    fixed_bytes,
    host_starts,
    layer_bytes_to,
    lender_starts,
    planned_stage,
    split_stages,
)
from app.core.reasons import combined_reason
from backends.contract import Layers, Role


class _Cut(NamedTuple):
    """A division of the first layers into runs, and the fill level of the fullest machine."""

    fullest: float
    edges: tuple[int, ...]


def plan_by_memory(
    host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload, *, alone: bool = True
) -> Plan:
    """Place the model. Raises DoesNotFit with suggestions.

    alone: whether the host may hold the whole model if it fits there. Otherwise, the model is always split.
    """
    whole = planned_stage(host, Role.WHOLE, Layers(0, model.n_layers), model, workload)
    fits = whole.total_bytes <= host.lends_bytes
    if fits and alone:
        return Plan((whole,), workload, (Reason("plan_fits_host", {"machine": host.name}),))
    ranked = sorted(lenders, key=lambda lender: (-lender.lends_bytes, lender.name, lender.id))
    for n_lenders in range(1, len(ranked) + 1 if model.cuts.boundaries else 1):
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
    """Return the stages of the legal split that leaves the most room on the fullest machine, or () if no split fits.

    The host's first run is as short as possible, because its last run includes the head, and a single long run is
    faster than two short runs.
    """
    boundaries, to = sorted(model.cuts.boundaries), layer_bytes_to(model, workload)
    start = next(edge for edge in boundaries if model.cuts.rules.allow(Layers(0, edge)))
    best: dict[int, _Cut] = {start: _Cut(0.0, (0, start))}  # by the edge at which the latest run ends
    for lender in lenders:
        beside = fixed_bytes(Role.MIDDLE, model, workload, lender)
        reached: dict[int, _Cut] = {}
        for begin, cut in best.items():
            for end in boundaries[bisect_right(boundaries, begin) :]:
                held = beside + to[end] - to[begin]
                if held > lender.lends_bytes:
                    break
                if not model.cuts.rules.allow(Layers(begin, end)):
                    continue
                fill = max(cut.fullest, held / lender.lends_bytes)
                if end not in reached or fill < reached[end].fullest:
                    reached[end] = _Cut(fill, (*cut.edges, end))
        best = reached
    ends = sum(fixed_bytes(role, model, workload, host) for role in (Role.FIRST, Role.LAST))
    fitting = []
    for end, cut in best.items():
        on_host = ends + to[start] + to[-1] - to[end]
        legal = model.cuts.rules.allow(Layers(end, model.n_layers))
        if legal and on_host <= host.lends_bytes:
            fitting.append(_Cut(max(cut.fullest, on_host / host.lends_bytes), cut.edges))
    if not fitting:
        return ()
    edges = (*min(fitting, key=lambda cut: cut.fullest).edges, model.n_layers)
    return split_stages([host, *lenders, host], edges, model, workload)


LEAST_CONTEXT = 256  # in positions; a model with a shorter context is useless
CONTEXT_STEP = 256  # suggested contexts are multiples of this
NEW_STEP_BYTES = 1 << 26  # the memory of a suggested machine is a multiple of this
SHARES = 64  # smaller files are tried in steps of 1/64


def does_not_fit(host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> DoesNotFit:
    """Return the error that states how much memory is missing and suggests what would help."""
    alone = planned_stage(host, Role.WHOLE, Layers(0, model.n_layers), model, workload)
    reasons = what_helps(host, lenders, model, workload)
    helps = combined_reason(reasons)
    lacks = [reason.facts["more_bytes"] for reason in reasons if reason.code in ("helps_limit", "helps_here")]
    context = next((int(reason.number("context")) for reason in reasons if "context" in reason.facts), 0)
    parts = {
        "weight_bytes": alone.weight_bytes,
        "kv_bytes": alone.kv_bytes,
        "work_bytes": alone.work_bytes,
        "fits_context": context,
        "short_bytes": lacks[0] if lacks else 0,
    }
    limited = host.past_limit_bytes is not None
    if not model.cuts.boundaries:
        code = "whole_over_limit" if limited else "whole_too_big"
        return DoesNotFit(
            code,
            model=model.name,
            machine=host.name,
            what_helps=helps,
            need_bytes=alone.total_bytes,
            free_bytes=host.lends_bytes,
            **parts,
        )
    if not lenders:
        code = "host_over_limit" if limited else "host_too_small"
        return DoesNotFit(
            code,
            model=model.name,
            machine=host.name,
            what_helps=helps,
            need_bytes=alone.total_bytes,
            lent_bytes=host.lends_bytes,
            **parts,
        )
    lent = host.lends_bytes + sum(lender.lends_bytes for lender in lenders)
    code = "pool_too_small"
    if lent >= alone.total_bytes:  # the total would be enough if it were on one machine
        code = "host_short_of_ends" if _more_here(host, lenders, model, workload) else "pool_in_pieces"
    return DoesNotFit(code, model=model.name, machine=host.name, need_bytes=alone.total_bytes,
                      lent_bytes=lent, here_bytes=host.lends_bytes, machines=1 + len(lenders),
                      what_helps=helps, **parts)  # fmt: skip


def what_helps(host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> list[Reason]:
    """Return the changes that would each be enough to make the model fit.

    Possible changes are a shorter context, more memory or a higher limit on this machine, another machine, or a smaller
    file.
    """
    reasons = []
    if context := longest_context(host, lenders, model, workload):
        reasons.append(Reason("helps_context", {"context": context}))
    if higher := _higher_limit(host, lenders, model, workload):
        reasons.append(Reason("helps_limit", {"more_bytes": higher, "machine": host.name}))
    elif lenders and (more_here := _more_here(host, lenders, model, workload)):
        reasons.append(Reason("helps_here", {"more_bytes": more_here, "machine": host.name}))
    if model.cuts.boundaries:
        bytes_needed = _new_machine(host, lenders, model, workload)
        if bytes_needed is not None:
            reasons.append(Reason("helps_machine", {"more_bytes": bytes_needed}))
    n = _most(SHARES - 1, lambda n: can_hold(host, lenders, _smaller(model, n), workload))
    if n:
        size = _smaller(model, n).file_bytes
        reasons.append(Reason("helps_smaller", {"file_bytes": size, "now_bytes": model.file_bytes}))
    return reasons or [Reason("helps_nothing")]


def longest_context(host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> int:
    """Return the longest context with which the model fits, or 0 if it would be too short to be useful.

    Only contexts shorter than the workload's are considered.
    """
    steps = (workload.context - 1) // CONTEXT_STEP
    n = _most(steps, lambda n: can_hold(host, lenders, model, replace(workload, context=n * CONTEXT_STEP)))
    return n * CONTEXT_STEP if n * CONTEXT_STEP >= LEAST_CONTEXT else 0


def can_hold(host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> bool:
    """Return whether the host, alone or with the lenders, can hold all layers.

    With lenders, only the shortest possible first run is considered.
    """
    alone = planned_stage(host, Role.WHOLE, Layers(0, model.n_layers), model, workload)
    if alone.total_bytes <= host.lends_bytes:
        return True
    if not model.cuts.boundaries:
        return False
    grid = Grid.of(model, workload)
    room = host.lends_bytes - sum(fixed_bytes(role, model, workload, host) for role in (Role.FIRST, Role.LAST))
    first = grid.firsts[0]
    ends = sum(
        1 << first + grid.n_blocks - n for n, firsts in enumerate(host_starts(grid, room)) if firsts >> first & 1
    )
    reach = 1 << first
    for lender in _largest_first(lenders):
        starts = lender_starts(grid, lender.lends_bytes - fixed_bytes(Role.MIDDLE, model, workload, lender))
        runs = [(n, mask) for n, mask in enumerate(starts) if mask]
        reach |= reachable_ends(reach, [runs])
    return bool(reach & ends)


def _largest_first(lenders: Sequence[Candidate]) -> list[Candidate]:
    return sorted(lenders, key=lambda lender: (-lender.lends_bytes, lender.name, lender.id))


def _new_machine(host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> int | None:
    """Return how many bytes an additional machine would have to lend, or None if no amount would be enough."""
    all_bytes = Grid.of(model, workload).bytes_to[-1] + fixed_bytes(Role.MIDDLE, model, workload)
    steps = 1 + all_bytes // NEW_STEP_BYTES

    def enough(n: int) -> bool:
        new = Candidate(MachineId(""), "", n * NEW_STEP_BYTES)
        return can_hold(host, [*lenders, new], model, workload)

    n_too_few = _most(steps, lambda n: not enough(n))
    return (n_too_few + 1) * NEW_STEP_BYTES if n_too_few < steps else None


def _more_here(host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> int | None:
    """Return how many more bytes the host would need, or None if only memory for the whole model would help."""
    alone = planned_stage(host, Role.WHOLE, Layers(0, model.n_layers), model, workload)
    steps = max(0, alone.total_bytes - host.lends_bytes) // NEW_STEP_BYTES

    def enough(n: int) -> bool:
        larger = replace(host, lends_bytes=host.lends_bytes + n * NEW_STEP_BYTES)
        return can_hold(larger, lenders, model, workload)

    n_too_few = _most(steps, lambda n: not enough(n))
    return (n_too_few + 1) * NEW_STEP_BYTES if n_too_few < steps else None


def _higher_limit(host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> int | None:
    """Return how many bytes to add to the host's own limit. Return None if it has no limit, or too little memory for
    a higher one."""
    if host.past_limit_bytes is None:
        return None
    alone = planned_stage(host, Role.WHOLE, Layers(0, model.n_layers), model, workload)
    more = _more_here(host, lenders, model, workload) if lenders else None
    more = more or alone.total_bytes - host.lends_bytes
    return more if more <= host.past_limit_bytes else None


def _smaller(model: Model, n: int) -> Model:
    """Return the model scaled to n / SHARES of its file size, as if it were quantized differently."""
    weights = replace(
        model.weights,
        layer_bytes=tuple(size * n // SHARES for size in model.weights.layer_bytes),
        embedding_bytes=model.weights.embedding_bytes * n // SHARES,
        head_bytes=model.weights.head_bytes * n // SHARES,
    )
    return replace(model, weights=weights, file_bytes=model.file_bytes * n // SHARES)


def _most(limit: int, holds: Callable[[int], bool]) -> int:
    """Return the largest n up to the limit for which `holds` is true, or 0 if there is none.

    If `holds` is true for a number, it must be true for all smaller numbers.
    """
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
