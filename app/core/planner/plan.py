"""The planner, which decides which machine holds which layers. It is deterministic.

It chooses the placement with the shortest typical request (app/core/planner/forecast.py) among the host alone, splits
over some of the lenders, and replicas. In a split, the host holds the first and the last run, so text, tokens and
logits never leave it. Replicas on lenders hold the whole model and receive the token ids of the requests that they
answer. The host's own replica may be a split. If machines were not measured, the model is placed by memory alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from app.core.errors import AppError, BadInput, DoesNotFit, Fact, Reason
from app.core.model import Model, neighbors
from app.core.planner.forecast import forecast, transfer_times
from app.core.planner.memory_plan import plan_by_memory
from app.core.planner.placement import (
    ALL_TOPOLOGIES,
    ONE_PIPELINE,
    PLENTY_BYTES,
    Alternative,
    Bottleneck,
    Candidate,
    Part,
    Plan,
    PlannedStage,
    Topology,
    Workload,
)
from app.core.planner.stage_memory import split_stages
from app.core.planner.topologies import (
    TopologyOption,
    TopologySearch,
    replicas_by_memory,
    replicas_reason,
    with_whole_replicas,
)
from backends.contract import PROVED_ENGINES, Layers, NumberFormat

NARROW_MAX_RATIO = 0.9  # 8 bits on the wire are worthwhile if they shorten a typical request to this fraction or less
MEMORY_MAX_RATIO = 0.9  # memory is the bottleneck if more of it would shorten requests to this fraction or less


def plan(
    host: Candidate,
    lenders: Sequence[Candidate],
    model: Model,
    workload: Workload,
    split: Sequence[int] | None = None,
    *,
    topologies: frozenset[Topology] = ALL_TOPOLOGIES,
) -> Plan:
    """Place the model on the host and the lenders.

    split: the forced number of layers of each run, in the order host, lenders, host. topologies: the topologies to
    choose from. A `split` combined with only replicas means the split plus whole replicas. The order of the lenders
    matters only for `split`. Raises DoesNotFit with the missing bytes or the impossible topology, and BadInput for an
    invalid split.
    """
    if split is not None:
        forced = _forced(host, lenders, model, workload, split)
        return forced if topologies & ONE_PIPELINE else with_whole_replicas(forced, lenders, model)
    lenders = sorted(lenders, key=lambda lender: (lender.name, lender.id))
    best = _best(host, lenders, model, workload, topologies)
    if best is None:
        best = _by_memory(host, lenders, model, workload, topologies)
        best = replace(best, reasons=(*best.reasons, *_unmeasured(host, lenders, best)))
    whole = [model.cuts.whole_reason] if model.cuts.whole_reason else []
    reasons = (*best.reasons, *_overflows((host, *lenders), best.stages), *whole)
    return replace(best, reasons=reasons, machines=(host, *lenders))


def plan_with_wire(
    host: Candidate,
    lenders: Sequence[Candidate],
    model: Model,
    workload: Workload,
    split: Sequence[int] | None = None,
    *,
    topologies: frozenset[Topology] = ALL_TOPOLOGIES,
) -> Plan:
    """Place the model with f16 on the wire, or with 8 bits if that makes a typical request clearly shorter.

    Eight bits slightly reduce answer quality (docs/wire-quality.md), so a small gain is not worth it. Raises the same
    errors as `plan`.
    """
    usual = plan(host, lenders, model, workload, split, topologies=topologies)
    narrow = replace(workload, number=NumberFormat.Q8)
    known = usual.forecast
    if known is None or not _may_gain(lenders, model, workload, narrow, known.request_s):
        return usual
    narrow_plan = plan(host, lenders, model, narrow, split, topologies=topologies)
    if narrow_plan.forecast is None or narrow_plan.topology is Topology.ONE_MACHINE:
        return usual
    if narrow_plan.forecast.request_s > NARROW_MAX_RATIO * known.request_s:
        return usual
    facts: dict[str, Fact] = {"narrow_s": narrow_plan.forecast.request_s, "usual_s": known.request_s}
    return replace(narrow_plan, reasons=(*narrow_plan.reasons, Reason("plan_narrow_wire", facts)))


def _may_gain(lenders: Sequence[Candidate], model: Model, usual: Workload, narrow: Workload, request_s: float) -> bool:
    """Return whether 8 bits on all links could save enough time to justify planning a second time."""
    n_bytes = [work.number.row_bytes(model.width) for work in (usual, narrow)]
    rows = usual.prompt + usual.output
    saved_s = 0.0
    for link in filter(None, (lender.link for lender in lenders)):
        wide_s, narrow_s = (transfer_times(link, rows * row)[0] for row in n_bytes)
        saved_s += wide_s - narrow_s
    return saved_s >= (1 - NARROW_MAX_RATIO) * request_s


def _by_memory(
    host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload, topologies: frozenset[Topology]
) -> Plan:
    """Return a plan based on memory alone, where possible in that of graphics cards. It contains replicas only if no
    other topology is allowed."""
    if any(machine.card_bytes is not None for machine in (host, *lenders)):
        on_cards = [machine.without_overflow for machine in lenders]
        with suppress(DoesNotFit):
            return _by_memory(host.without_overflow, on_cards, model, workload, topologies)
        cardless = [replace(machine, card_bytes=None) for machine in lenders]
        return _by_memory(replace(host, card_bytes=None), cardless, model, workload, topologies)
    if not topologies & ONE_PIPELINE:
        return replicas_by_memory(host, lenders, model, workload)
    placed = plan_by_memory(host, lenders, model, workload, alone=Topology.ONE_MACHINE in topologies)
    if placed.topology not in topologies:
        raise DoesNotFit("shape_not_alone", model=model.name, machine=host.name)
    return placed


def _best(
    host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload, topologies: frozenset[Topology]
) -> Plan | None:
    """Return the best option on measured machines, or None if the model does not fit on them."""
    if host.speed is None:
        return None
    measured = [_as_measured(lender) for lender in lenders if lender.speed and lender.link]
    household = TopologySearch(_as_measured(host), measured, model, workload)
    options = household.options()
    allowed = [option for option in options if option.topology in topologies]
    if not allowed:
        return None
    best = min(allowed, key=lambda option: option.forecast.request_s)
    known = replace(best.forecast, bottleneck=_bottleneck(best, household, topologies))
    best = replace(best, forecast=known)
    reasons = reasons_for(best, options, household, lenders)
    alternatives = tuple(Alternative(option.topology, option.names, option.forecast) for option in options)
    return Plan(best.stages, workload, reasons, known, alternatives, allowed=topologies)


def _as_measured(machine: Candidate) -> Candidate:
    """Return the machine. Its main memory is left out if it has graphics cards and its processor was not measured."""
    return machine if machine.speed and machine.speed.processor else machine.without_overflow


def _bottleneck(best: TopologyOption, household: TopologySearch, topologies: frozenset[Topology]) -> Bottleneck:
    """Return the bottleneck. It is memory if unlimited memory would make requests much shorter."""
    known = best.forecast
    if best.topology is Topology.REPLICAS:
        return known.bottleneck
    machines = (household.host, *household.lenders)
    freer = [replace(machine, lends_bytes=PLENTY_BYTES, card_bytes=None) for machine in machines]
    roomy = TopologySearch(freer[0], freer[1:], household.model, household.workload)
    better = roomy.below(MEMORY_MAX_RATIO * known.request_s, topologies)
    if better is None:
        return known.bottleneck
    most = max(machines, key=lambda m: better.layers(m.id) - best.layers(m.id))
    saved = 1 - better.forecast.request_s / known.request_s
    return Bottleneck(Part.MEMORY, most.id, most.name, saved)


def _overflows(machines: Sequence[Candidate], stages: Sequence[PlannedStage]) -> list[Reason]:
    """Return a reason for each machine whose graphics cards have no room for all its layers."""
    reasons = []
    for machine in machines:
        held_bytes = sum(stage.total_bytes for stage in stages if stage.machine == machine.id)
        if machine.card_bytes is not None and held_bytes > machine.fast_bytes:
            percent = round(100 * (1 - machine.fast_bytes / held_bytes))
            reasons.append(Reason("plan_overflow", {"machine": machine.name, "percent": max(1, percent)}))
    return reasons


def _unmeasured(host: Candidate, lenders: Sequence[Candidate], placed: Plan) -> list[Reason]:
    """Return a reason for each machine of the placement that was not measured."""
    used = {stage.machine for stage in placed.stages}
    missing = [host] if host.speed is None else []
    missing += [m for m in lenders if m.id in used and (m.speed is None or m.link is None)]
    return [Reason("plan_unmeasured", {"machine": machine.name}) for machine in missing]


def _forced(
    host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload, split: Sequence[int]
) -> Plan:
    _check_split(lenders, model, split)
    holders = [host] if len(split) == 1 else [host, *lenders[: len(split) - 2], host]
    edges = [sum(split[:n]) for n in range(len(split) + 1)]
    stages = split_stages(holders, edges, model, workload)
    for machine in dict.fromkeys(holders):
        need = sum(stage.total_bytes for stage in stages if stage.machine == machine.id)
        if not machine.lends_bytes and machine is not host:
            raise DoesNotFit("machine_lends_nothing", machine=machine.name)
        if need > machine.lends_bytes:
            raise DoesNotFit("machine_too_small", machine=machine.name, need_bytes=need, free_bytes=machine.lends_bytes)
    machines = (host, *lenders)
    known = forecast(stages, {machine.id: machine for machine in machines}, model, workload)
    return Plan(stages, workload, (Reason("plan_forced"), *_overflows(machines, stages)), known, (), machines)


def _check_split(lenders: Sequence[Candidate], model: Model, split: Sequence[int]) -> None:
    shown = ",".join(map(str, split))
    if any(n < 1 for n in split) or sum(split) != model.n_layers:
        raise BadInput("split_sum", split=shown, sum=sum(split), layers=model.n_layers)
    if len(split) == 2:
        raise BadInput("split_two", split=shown)
    if len(split) - 2 > len(lenders):
        raise BadInput("split_lenders", split=shown, need=len(split) - 2, have=len(lenders))
    if len(split) == 1:
        return
    if not model.cuts.boundaries:
        raise BadInput("split_family", architecture=model.architecture)
    edges = [0, *accumulate(split)]
    for first, last in pairwise(edges):
        if not _may_end(model, first, last):
            layer = last if last < model.n_layers else first
            where = " or ".join(map(str, neighbors(layer, _legal_near(model, edges, layer))))
            raise BadInput("split_boundary", split=shown, layer=layer, legal=where or Reason("nowhere"))


def _may_end(model: Model, first: int, last: int) -> bool:
    """Return whether these layers form a legal run, assuming that its beginning is legal."""
    ends = last in model.cuts.boundaries or last == model.n_layers
    return ends and (len(model.layers) == last - first or model.cuts.rules.allow(Layers(first, last)))


def _legal_near(model: Model, edges: Sequence[int], layer: int) -> list[int]:
    """Return the layers before which the model could be cut instead of before `layer`, with all other cuts kept."""
    place = edges.index(layer)
    before, after = edges[place - 1], edges[place + 1]
    legal = [
        edge
        for edge in model.cuts.boundaries
        if before < edge < after
        and model.cuts.rules.allow(Layers(before, edge))
        and model.cuts.rules.allow(Layers(edge, after))
    ]
    return legal or list(model.cuts.boundaries)


NEGLIGIBLE = 0.01  # smaller relative differences do not count


def reasons_for(
    best: TopologyOption, options: Sequence[TopologyOption], household: TopologySearch, lenders: Sequence[Candidate]
) -> tuple[Reason, ...]:
    """Return the reasons for choosing `best` among `options`. `lenders` includes machines that were not measured."""
    reasons = [_topology_reason(best, options, household)]
    pace = best.forecast.bottleneck
    # it says nothing that a single machine computes all the time
    if len(best.machines) > 1 or pace.part is not Part.MACHINE:
        reasons.append(_pace(pace))
    if household.search is not None and best.topology is not Topology.REPLICAS:
        left_out = (lender for lender in lenders if lender.id not in best.machines)
        reasons += [_left_out(lender, best, household) for lender in left_out]
    return tuple(reasons)


def _topology_reason(best: TopologyOption, options: Sequence[TopologyOption], household: TopologySearch) -> Reason:
    known = {option.topology: option.forecast.request_s for option in options}
    alone_s, split_s = known.get(Topology.ONE_MACHINE), known.get(Topology.SPLIT)
    host, n_machines = household.host.name, len(best.machines)
    if best.topology is Topology.REPLICAS:
        users, request_s = household.workload.users, best.forecast.request_s
        codes = "plan_replicas", "plan_replicas_mixed"
        return replicas_reason(best.stages, *codes, users=users, request_s=request_s)
    if best.topology is Topology.SPLIT and alone_s is None:
        return Reason("plan_split", {"machine": host, "machines": n_machines})
    if alone_s is None or split_s is None:
        return Reason("plan_fits_host", {"machine": host})
    if best.topology is Topology.SPLIT:
        return Reason(
            "plan_split_faster", {"machines": n_machines, "machine": host, "split_s": split_s, "alone_s": alone_s}
        )
    return Reason("plan_alone_faster", {"machine": host, "split_s": split_s, "alone_s": alone_s})


def _pace(bottleneck: Bottleneck) -> Reason:
    """Return the reason that names the bottleneck."""
    name, percent = bottleneck.name, 100 * bottleneck.share
    match bottleneck.part:
        case Part.MACHINE:
            return Reason("pace_machine", {"machine": name, "percent": percent})
        case Part.LINK:
            return Reason("pace_link", {"machine": name, "percent": percent})
        case Part.MEMORY:
            return Reason("pace_memory", {"machine": name, "percent": percent})


def _left_out(lender: Candidate, best: TopologyOption, household: TopologySearch) -> Reason:
    """Return the reason why this machine holds nothing, based on the best placement that includes it."""
    if not lender.is_lending:
        return Reason("left_out_lends_nothing", {"machine": lender.name})
    if lender.speed is None or lender.link is None:
        return Reason("left_out_unmeasured", {"machine": lender.name})
    with_it, without = household.with_also(best, lender.id), best.forecast
    if with_it is None:
        return Reason("left_out_room", {"machine": lender.name, "lent_bytes": lender.lends_bytes})
    if with_it.request_s < (1 + NEGLIGIBLE) * without.request_s:
        return Reason("left_out_same", {"machine": lender.name})
    several = household.workload.users > 1
    fast, slow = ((forecast.together_tok_s if several else forecast.decode_tok_s) for forecast in (without, with_it))
    if slow * (1 + NEGLIGIBLE) < fast:
        return Reason("left_out_slower", {"machine": lender.name, "with_tok_s": slow, "without_tok_s": fast})
    return Reason(
        "left_out_longer", {"machine": lender.name, "with_s": with_it.request_s, "without_s": without.request_s}
    )


PROVED = " or ".join(PROVED_ENGINES)


@dataclass(frozen=True, slots=True)
class EligibleMachines:
    """The lenders that may hold layers, and the machines that are excluded because of their engines or because they
    computed wrong numbers.
    """

    lenders: tuple[Candidate, ...]
    unproved: tuple[Candidate, ...]
    host_is_proved: bool  # if False, nothing is split, because the host holds a part of every split
    doubted: tuple[Candidate, ...] = ()

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Return a reason for each excluded machine."""
        doubted = [Reason("left_out_doubted", {"machine": machine.name}) for machine in self.doubted]
        unproved = [
            Reason("left_out_engine" if self.host_is_proved else "plan_engine", _facts(machine))
            for machine in self.unproved
        ]
        return (*unproved, *doubted)

    def explain(self, error: AppError) -> AppError:
        """Return the planner's error, extended if the excluded machines might have made the plan possible."""
        if not isinstance(error, BadInput | DoesNotFit):
            return error
        if self.doubted and not self.unproved:
            name = self.doubted[0].name
            return type(error)("doubt_in_the_way", machine=name, what=error.reason)
        if not self.unproved:
            return error
        facts = _facts(self.unproved[0])
        return type(error)("engine_in_the_way", **facts, what=error.reason)


def eligible_machines(host: Candidate, lenders: Sequence[Candidate]) -> EligibleMachines:
    """Return which machines may hold layers and which are excluded."""
    if host.unproved:
        return EligibleMachines((), (host,), host_is_proved=False)
    apart = tuple(lender for lender in lenders if lender.unproved)
    doubted = tuple(lender for lender in lenders if lender.doubted and not lender.unproved)
    used = tuple(lender for lender in lenders if not (lender.unproved or lender.doubted))
    return EligibleMachines(used, apart, host_is_proved=True, doubted=doubted)


def _facts(machine: Candidate) -> dict[str, Fact]:
    _, _, version = machine.engine.partition(" ")
    return {"machine": machine.name, "engine": version, "proved": PROVED}
