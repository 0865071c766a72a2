"""Whether models that are not here yet would fit: their verdicts, and where their layers would go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from app.core.by_memory import plan_by_memory
from app.core.errors import DoesNotFit
from app.core.model import Model
from app.core.placement import Candidate, Workload
from app.core.sketch import sketched
from app.core.verdict import judge
from app.node import requests as asked
from app.node.planning import BATCH_ROWS, CONTEXT, USERS
from app.node.snapshot import plan_json

Json = dict[str, Any]


async def verdicts(order: asked.Judge, host: Candidate, lenders: Sequence[Candidate]) -> Json:
    """One for each sketch, by its key; with `place` also the plan, by memory alone."""
    there = [lender for lender in lenders if lender.id not in order.without]
    found = {}
    for sketch in order.sketches:
        model = sketched(
            sketch.key, sketch.architecture, sketch.file_bytes, sketch.n_layers,
            sketch.kv_bytes_per_token, sketch.context_length, splits=sketch.splits,
        )  # fmt: skip
        context = min(order.context or CONTEXT, model.context_length)
        work = Workload(context, order.users or USERS, BATCH_ROWS, kv=order.kv)
        # some milliseconds each, and there may be many: not on the loop
        verdict = asdict(await asyncio.to_thread(judge, host, there, model, work))
        plan = await asyncio.to_thread(_placed, host, there, model, work) if order.place else None
        found[sketch.key] = verdict | {"plan": plan}
    return {"verdicts": found}


def _placed(
    host: Candidate, lenders: Sequence[Candidate], model: Model, work: Workload
) -> Json | None:
    """The plan; None when it does not fit."""
    try:
        found = plan_by_memory(host, lenders, model, work)
    except DoesNotFit:
        return None
    machines = (host, *lenders)
    lends = {machine.id: machine.lends_bytes for machine in machines}
    return plan_json(replace(found, machines=machines), model, lends)
