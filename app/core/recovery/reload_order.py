"""What loads again what is loaded now: the same model, on the same machines, kept and sent the same way.

From and to the JSON of a node. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]
Run = tuple[str, int, int]  # machine, first layer, the one after its last

KEPT = ("model", "context", "users", "kv", "number")  # of a load, for the next one
SHAPES = {"one machine": "one", "split": "split", "replicas": "replicas"}


def order_on(loaded: Mapping[str, Any], machines: Iterable[str], used: Iterable[str]) -> Json:
    """What loads the model as it is loaded now, but only on `used` of all `machines` (ids)."""
    kept = {name: loaded[name] for name in KEPT if loaded.get(name) is not None}
    allowed = set(used)
    without = [one for one in machines if one not in allowed]
    return kept | {"measure": False, "without": without}


def same_orders(loaded: Mapping[str, Any], machines: Iterable[str]) -> tuple[Json, ...]:
    """What may load it as it lies now, the best first: where the planner itself places it so, that order
    says it without a split. The first is also the one for where none of them would."""
    runs = runs_of(loaded)
    order = order_on(loaded, machines, {machine for machine, _, _ in runs})
    shape = SHAPES.get(str(loaded.get("shape")))
    planned = order | ({"shape": shape} if shape else {})
    split = _first_pipeline(runs)
    if len(split) < 2:
        return (planned,)
    by_hand = {"split": [last - first for _, first, last in split]}
    return planned, order | by_hand | ({"shape": shape} if len(split) < len(runs) else {})


def is_same(loaded: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
    """Whether a plan gives every machine the layers that it holds now."""
    return runs_of(loaded) == runs_of(planned)


def runs_of(placed: Mapping[str, Any]) -> list[Run]:
    return [(one["id"], one["first"], one["last"]) for one in placed["stages"]]


def _first_pipeline(runs: Sequence[Run]) -> list[Run]:
    """The host's: whole ones on other machines, if there are any, come after its last run."""
    n_layers = max((last for _, _, last in runs), default=0)
    ends = next((place for place, (_, _, last) in enumerate(runs) if last == n_layers), 0)
    return list(runs[: ends + 1])


def is_still(loaded: Mapping[str, Any], now: Mapping[str, Any] | None) -> bool:
    """Whether what is loaded now is still the same, and answers."""
    if now is None or now.get("state") != "ready" or not is_same(loaded, now):
        return False
    return all(loaded.get(name) == now.get(name) for name in KEPT)
