"""Verdicts on models that are not on this computer yet: whether they fit, where they would be placed, and how fast
they would run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from app.api import requests
from app.api.models import MemoryParts, Starter, Verdict, Verdicts
from app.api.plans import Plan
from app.catalog.families.effort_reader import kind_of, stand_in_shape
from app.catalog.families.family_table import FAMILIES
from app.catalog.gguf import tensor_types
from app.catalog.model_catalog import OfferedFile, OfferedModel, load_catalog
from app.core.errors import DoesNotFit, Reason
from app.core.ids import MachineId
from app.core.model import Model, family_of
from app.core.planner.placement import Candidate, Workload
from app.core.planner.plan import plan
from app.core.planner.speed_estimates import SpeedConditions, estimated_effort, estimated_model
from app.core.planner.verdict import StarterOption, VerdictWord, choose_starter, judge
from app.core.reasons import sentence
from app.node.control.json_bodies import Report
from app.node.planning.planner_inputs import PlannerInputs
from app.node.planning.planning import BATCH_ROWS, CONTEXT, USERS
from app.node.planning.speed_measurer import SpeedBasis
from app.node.snapshot import describe_plan

MOST_CONTEXT = 1 << 24  # if the catalog states no context length
Use = Literal["chat", "code"]  # for which a first model is recommended


async def starter(
    planner_inputs: PlannerInputs, released: Mapping[MachineId, int], use: Use = "chat", *, exact: bool = False
) -> Starter | None:
    """Return the catalog's recommended first model for a use, or None if none fits with memory to spare.

    Nothing is measured.
    """
    known = await asyncio.to_thread(load_catalog)
    host, lenders = planner_inputs.machines(released, {})
    together = host.lends_bytes + sum(lender.lends_bytes for lender in lenders)
    versions: dict[str, tuple[OfferedModel, OfferedFile]] = {}
    for offer in (*known.starters(use), *known.other_starters(use)):
        version = offer.version_for(together if offer.splits else host.lends_bytes)
        if version is not None:
            versions[offer.id] = offer, version
    known_verdicts: dict[str, Verdict] = {}
    options: list[StarterOption] = []
    for offer, version in versions.values():
        order = requests.JudgeModels([_sketch(offer, version)], place=True)
        known_verdicts |= (await verdicts(order, planner_inputs, released, lambda _: None, exact=exact)).verdicts
        options.append(_option(offer, version, known_verdicts[offer.id]))
        if options[-1].suits:  # the best offers come first, so the rest need no verdict
            break
    chosen = choose_starter(options)
    if chosen is None:
        return None
    offer, file = versions[chosen.key]
    parts = known_verdicts[chosen.key].parts
    assert parts is not None  # a model that fits has a breakdown of its memory
    return Starter(
        offer.id,
        offer.name,
        file.file,
        file.quantization,
        file.size_bytes,
        parts.needs_bytes,
        parts.lends_bytes,
        chosen.tok_s,
        _machines(known_verdicts[chosen.key]),
        known_verdicts[chosen.key].spread,
    )


def _machines(verdict: Verdict) -> list[str]:
    """Return the names of the machines that would hold layers, without repetition."""
    return list(dict.fromkeys(stage.machine for stage in verdict.plan.stages)) if verdict.plan is not None else []


def _sketch(offer: OfferedModel, file: OfferedFile) -> requests.Sketch:
    return requests.Sketch(
        key=offer.id,
        file_bytes=file.size_bytes or 1,
        architecture=offer.architecture,
        n_layers=offer.n_layers,
        kv_bytes_per_token=offer.kv_bytes_per_token,
        context_length=offer.context_length or MOST_CONTEXT,
        splits=offer.splits,
        quantization=file.quantization,
        parameters=offer.parameters,
        active_parameters=offer.active_parameters,
    )


def _option(offer: OfferedModel, file: OfferedFile, verdict: Verdict) -> StarterOption:
    share = 1.0
    if offer.active_parameters and offer.parameters:
        share = offer.active_parameters / offer.parameters
    forecast = verdict.plan.forecast if verdict.plan else None
    read = int(share * (file.size_bytes or 0))
    return StarterOption(offer.id, VerdictWord(verdict.word), read, forecast.decode_tok_s if forecast else None)


async def verdicts(
    order: requests.JudgeModels,
    planner_inputs: PlannerInputs,
    released: Mapping[MachineId, int],
    report: Report,
    *,
    exact: bool = False,
) -> Verdicts:
    """Return the verdict on each sketched model, by key. If `order.place` is set, each verdict includes a plan and
    its estimated speed.

    exact: whether the owner wants reproducible results when models are loaded.
    """
    by_key = {}
    for sketch in order.sketches:
        model = estimated_model(
            sketch.key,
            sketch.architecture,
            sketch.file_bytes,
            sketch.n_layers,
            sketch.kv_bytes_per_token,
            sketch.context_length,
            splits=sketch.splits,
        )
        context = min(order.context or CONTEXT, model.context_length)
        work = Workload(context, order.users or USERS, BATCH_ROWS, kv=order.kv)
        family = family_of(sketch.architecture, sketch.quantization)
        placing = order.place or order.forecast
        basis = _basis(sketch, model) if placing else None
        speeds: Mapping[MachineId, Any] = {}
        if basis is not None:
            speeds = await planner_inputs.speeds_like(
                basis, SpeedConditions(BATCH_ROWS, exact, family), report, known_only=not order.measure
            )
        host, lenders = planner_inputs.machines(released, speeds, family)
        there = [lender for lender in lenders if lender.id not in order.without]
        # each call takes some milliseconds and there may be many, so not on the event loop
        verdict = await asyncio.to_thread(judge, host, there, model, work)
        placed = await asyncio.to_thread(_placed, host, there, model, work) if placing else None
        known = placed.as_shown().forecast if placed is not None else None
        why = _unforecast(sketch) if order.place and basis is None else None
        parts = MemoryParts(**asdict(verdict.parts)) if verdict.parts else None
        by_key[sketch.key] = Verdict(
            verdict.word,
            verdict.spare_bytes,
            verdict.short_bytes,
            verdict.context,
            parts,
            placed if order.place else None,
            known.decode_tok_s if known is not None else None,
            known.spread if known is not None else 1.0,
            sentence(why),
            why,
        )
    return Verdicts(by_key)


def _basis(sketch: requests.Sketch, model: Model) -> SpeedBasis | None:
    """Return the basis to measure for a sketched model, or None if its model family is unknown."""
    if sketch.architecture not in FAMILIES:
        return None
    kind = kind_of(sketch.quantization)
    _, values, n_bytes = next(tensor for tensor in tensor_types.TENSORS.values() if tensor[0] == kind)
    effort = estimated_effort(model, sketch.parameters, sketch.active_parameters, n_bytes / values)
    return SpeedBasis(stand_in_shape(kind), effort)


def _unforecast(sketch: requests.Sketch) -> Reason:
    if not sketch.architecture:
        return Reason("unforecast_unknown")
    return Reason("unforecast_family", {"architecture": sketch.architecture})


def _placed(host: Candidate, lenders: Sequence[Candidate], model: Model, work: Workload) -> Plan | None:
    """Return the plan of a model, or None if it does not fit."""
    try:
        chosen = plan(host, lenders, model, work)
    except DoesNotFit:
        return None
    unmeasured = (reason for reason in chosen.reasons if reason.code != "plan_unmeasured")
    estimate = (Reason("plan_sketched"),) if chosen.forecast else ()
    machines = (host, *lenders)
    lends = {machine.id: machine.lends_bytes for machine in machines}
    known = replace(chosen, machines=machines, reasons=(*unmeasured, *estimate))
    return describe_plan(known, model, lends)
