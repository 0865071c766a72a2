"""The shape of an answer: its keys and kinds of values; and what of one shape another lacks."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

Shape = dict[str, Any] | list[Any] | str
NAMES = frozenset(("type", "object", "role"))  # keys of what an API names
REASONS = frozenset(("finish_reason", "stop_reason"))


def shape_of(body: bytes, always: bool = False) -> Shape:
    """Of an answer, or of all events of a stream together; of those that name their type, each type by itself, and
    the order in which they come. always: it is the same whenever it is asked for, so that it counts why it ended, and
    of a chat's stream the order in which its parts come."""
    named = NAMES | REASONS if always else NAMES
    text = body.decode("utf-8")
    if not text:
        return "nothing"
    if not text.lstrip().startswith(("data:", "event:")):
        return _shape(json.loads(text), named)
    data = [line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")]
    events = [json.loads(one) for one in data if one != "[DONE]"]
    ends = {"ends": "[DONE]" if data[-1] == "[DONE]" else "otherwise"}
    if "type" not in events[0]:
        order = {"order": _order(events)} if always else {}
        return {"events": _together(events, named), **order, **ends}
    types = [event["type"] for event in events]
    each = {name: _together([one for one in events if one["type"] == name], named) for name in types}
    return {"events": each, "order": " ".join(name for name, _ in groupby(types)), **ends}


def _order(events: list[Any]) -> str:
    """What the chunks of a chat bring, one after another; texts apart, which depend on the model."""
    brought: list[str] = []
    for choice in (choice for event in events for choice in event["choices"]):
        brought += sorted(choice.get("delta", {}).keys() - {"content"})
        brought += ["the end"] if choice["finish_reason"] else []
    return ", ".join(name for name, _ in groupby(brought))


def _together(values: list[Any], words: frozenset[str]) -> Shape:
    """What any of them may be."""
    whole, *shapes = (_shape(value, words) for value in values)
    for one in shapes:
        whole = _merged(whole, one)
    return whole


def _shape(value: Any, words: frozenset[str]) -> Shape:
    match value:
        case None:
            return "nothing"
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            shapes = [_shape(one, words) for one in value]
            while len(shapes) > 1:
                shapes[:2] = [_merged(*shapes[:2])]
            return shapes
        case dict():
            if value and all(isinstance(one, float) for one in value.values()):
                return {"(a token)": "number"}  # OpenAI's log probabilities of texts
            return {
                str(key): f"={one}" if key in words and isinstance(one, str) else _shape(one, words)
                for key, one in value.items()
            }
    raise TypeError(value)


def _merged(one: Shape, other: Shape) -> Shape:
    """What either may be."""
    match one, other:
        case dict(), dict():
            keys = [*one, *(key for key in other if key not in one)]
            return {
                key: _merged(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key))
                for key in keys
            }  # fmt: skip
        case list(), list():
            return [_merged(one[0], other[0])] if one and other else one or other
        case str(), str():
            return "|".join(sorted({*one.split("|"), *other.split("|")}))
    return one if other == "nothing" else other if one == "nothing" else f"{one} or {other}"


def misses(theirs: Shape, ours: Shape, path: str = "") -> list[str]:
    """What of their shape ours has not, by its path."""
    match theirs, ours:
        case dict(), dict():
            found = [f"{path}.{key}" for key in theirs if key not in ours]
            for key in theirs.keys() & ours.keys():
                found += misses(theirs[key], ours[key], f"{path}.{key}")
            return sorted(found)
        case list(), list():
            return misses(theirs[0], ours[0], f"{path}[]") if theirs and ours else []
        case str(), str():
            same = set(theirs.split("|")) & set(ours.split("|"))
            words = {one for one in theirs.split("|") if one.startswith("=")}
            if words - same:
                return [f"{path}: {theirs}, {ours}"]
            return [] if same or "nothing" in (theirs, ours) else [f"{path}: {theirs}, {ours}"]
    return [] if "nothing" in (theirs, ours) else [f"{path}: of another kind"]
