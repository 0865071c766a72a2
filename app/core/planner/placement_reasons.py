"""Why a placement was chosen: its shape, what sets its pace, and who was left out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.errors import Reason
from app.core.planner.placement import Bottleneck, Candidate, Part, Shape
from app.core.planner.replicas import several_reason
from app.core.planner.topologies import Household, Option

SAME = 0.01  # a smaller difference is none


def reasons_for(
    best: Option, found: Sequence[Option], household: Household, lenders: Sequence[Candidate]
) -> tuple[Reason, ...]:
    """All that there is to say about the choice of `best` out of `found`. `lenders`: measured or not."""
    reasons = [_why_shape(best, found, household)]
    pace = best.forecast.bottleneck
    # one machine alone computes all the time anyway
    if len(best.machines) > 1 or pace.part is not Part.MACHINE:
        reasons.append(_pace(pace))
    if household.search is not None and best.shape is not Shape.REPLICAS:
        left_out = (lender for lender in lenders if lender.id not in best.machines)
        reasons += [_left_out(lender, best, household) for lender in left_out]
    return tuple(reasons)


def _why_shape(best: Option, found: Sequence[Option], household: Household) -> Reason:
    known = {option.shape: option.forecast.request_s for option in found}
    alone_s, split_s = known.get(Shape.ONE_MACHINE), known.get(Shape.SPLIT)
    host, n_machines = household.host.name, len(best.machines)
    if best.shape is Shape.REPLICAS:
        users, request_s = household.workload.users, best.forecast.request_s
        codes = "plan_replicas", "plan_replicas_mixed"
        return several_reason(best.stages, *codes, users=users, request_s=request_s)
    if best.shape is Shape.SPLIT and alone_s is None:
        return Reason("plan_split", {"machine": host, "machines": n_machines})
    if alone_s is None or split_s is None:
        return Reason("plan_fits_host", {"machine": host})
    if best.shape is Shape.SPLIT:
        return Reason("plan_split_faster", {"machines": n_machines, "machine": host,
                                            "split_s": split_s, "alone_s": alone_s})  # fmt: skip
    return Reason("plan_alone_faster", {"machine": host, "split_s": split_s, "alone_s": alone_s})


def _pace(bottleneck: Bottleneck) -> Reason:
    """What sets the pace."""
    name, percent = bottleneck.name, 100 * bottleneck.share
    match bottleneck.part:
        case Part.MACHINE:
            return Reason("pace_machine", {"machine": name, "percent": percent})
        case Part.LINK:
            return Reason("pace_link", {"machine": name, "percent": percent})
        case Part.MEMORY:
            return Reason("pace_memory", {"machine": name, "percent": percent})


def _left_out(lender: Candidate, best: Option, household: Household) -> Reason:
    """Why this machine holds nothing: what the same placement would do with it, at its best."""
    if not lender.is_lending:
        return Reason("left_out_lends_nothing", {"machine": lender.name})
    if lender.speed is None or lender.link is None:
        return Reason("left_out_unmeasured", {"machine": lender.name})
    with_it, without = household.with_also(best, lender.id), best.forecast
    if with_it is None:
        return Reason("left_out_room", {"machine": lender.name, "lent_bytes": lender.lends_bytes})
    if with_it.request_s < (1 + SAME) * without.request_s:
        return Reason("left_out_same", {"machine": lender.name})
    several = household.workload.users > 1
    fast, slow = (
        (one.together_tok_s if several else one.decode_tok_s) for one in (without, with_it)
    )
    if slow * (1 + SAME) < fast:
        return Reason("left_out_slower", {"machine": lender.name, "with_tok_s": slow,
                                          "without_tok_s": fast})  # fmt: skip
    return Reason("left_out_longer", {"machine": lender.name, "with_s": with_it.request_s,
                                      "without_s": without.request_s})  # fmt: skip
