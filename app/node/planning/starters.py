"""Which model of the catalogue this household begins with today, and the sum behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from app.api import requests
from app.catalog.catalogue import Offer, OfferedFile, shipped
from app.core.ids import MachineId
from app.core.planner.verdict import Option, Word, choose
from app.node.planning.planner_inputs import PlannerInputs
from app.node.planning.verdicts import verdicts

Json = dict[str, Any]
MOST_CONTEXT = 1 << 24  # where nobody says


async def starter(outlook: PlannerInputs, released: Mapping[MachineId, int]) -> Json | None:
    """None where nothing of the catalogue fits with room to spare. Nothing is measured for it."""
    known = await asyncio.to_thread(shipped)
    host, lenders = outlook.machines(released, {})
    together = host.lends_bytes + sum(one.lends_bytes for one in lenders)
    versions: dict[str, tuple[Offer, OfferedFile]] = {}
    for offer in (*known.starters(), *known.other_starters()):
        one = offer.version_for(together if offer.splits else host.lends_bytes)
        if one is not None:
            versions[offer.id] = offer, one
    found: dict[str, Json] = {}
    options: list[Option] = []
    for offer, one in versions.values():
        order = requests.Judge([_sketch(offer, one)], place=True)
        found |= (await verdicts(order, outlook, released, lambda _: None))["verdicts"]
        options.append(_option(offer, one, found[offer.id]))
        if options[-1].suits:  # the best come first: what follows is not asked
            break
    chosen = choose(options)
    if chosen is None:
        return None
    offer, file = versions[chosen.key]
    parts = found[chosen.key]["parts"]
    return {
        "id": offer.id,
        "name": offer.name,
        "file": file.file,
        "quantisation": file.quantisation,
        "size_bytes": file.size_bytes,
        "needs_bytes": parts["weight_bytes"] + parts["kv_bytes"] + parts["work_bytes"],
        "lends_bytes": parts["lends_bytes"],
        "tok_s": chosen.tok_s,
    }


def _sketch(offer: Offer, file: OfferedFile) -> requests.Sketch:
    return requests.Sketch(
        key=offer.id,
        file_bytes=file.size_bytes or 1,
        architecture=offer.architecture,
        n_layers=offer.n_layers,
        kv_bytes_per_token=offer.kv_bytes_per_token,
        context_length=offer.context_length or MOST_CONTEXT,
        splits=offer.splits,
        quantisation=file.quantisation,
        parameters=offer.parameters,
        active_parameters=offer.active_parameters,
    )


def _option(offer: Offer, file: OfferedFile, verdict: Json) -> Option:
    share = 1.0
    if offer.active_parameters and offer.parameters:
        share = offer.active_parameters / offer.parameters
    forecast = (verdict["plan"] or {}).get("forecast") or {}
    read = int(share * (file.size_bytes or 0))
    return Option(offer.id, Word(verdict["word"]), read, forecast.get("decode_tok_s"))
