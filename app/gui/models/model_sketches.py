"""What the node needs to estimate a model that is not here, and which of its files would fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.gui.models.model_item import Item, Kind
from app.gui.models.verdicts import Judgement, of_estimate

Json = dict[str, Any]
MOST_CONTEXT = 1 << 24


def sketch(item: Item, file: Json | None, key: str) -> Json | None:
    """None when not even its size is known."""
    facts = item.facts
    size = facts.get("size_bytes") if item.kind is Kind.OTHER_APP else (file or {}).get("size_bytes")
    if not size:
        return None
    context = int(facts.get("context_length") or MOST_CONTEXT)
    return {
        "key": key,
        "architecture": str(facts.get("architecture") or "")[:100],
        "file_bytes": int(size),
        "n_layers": facts.get("n_layers"),
        "kv_bytes_per_token": facts.get("kv_bytes_per_token"),
        "context_length": min(context, MOST_CONTEXT),
        "splits": facts.get("splits") is not False,
        "quantisation": str((file or facts).get("quantisation") or "")[:100],
        "parameters": facts.get("parameters"),
        "active_parameters": facts.get("active_parameters"),
    }


def smaller_files(item: Item, file: Json) -> list[Json]:
    """Usable files that take less, the largest first."""
    limit = file.get("size_bytes") or file.get("file_bytes") or 0
    fewer = [one for one in item.files if one.get("usable") and 0 < (one.get("size_bytes") or 0) < limit]
    return sorted(fewer, key=lambda one: -int(one["size_bytes"]))


def with_smaller(found: Json, smaller: list[tuple[Json, Json]]) -> Judgement:
    """A verdict; of a model that is too big with the largest of its smaller files that fits."""
    if found["word"] != "too big":
        return of_estimate(found)
    return of_estimate(found, largest_fitting(smaller))


def largest_fitting(smaller: Iterable[tuple[Json, Json]]) -> str:
    """The quantisation of the first of these files whose verdict is that it fits; "" for none."""
    fitting = (file for file, one in smaller if of_estimate(one).fits)
    return str(next(fitting, {}).get("quantisation") or "")
