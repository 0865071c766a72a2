"""The shape of an answer: its keys and kinds of values; and what of one shape another lacks."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

Shape = dict[str, Any] | list[Any] | str
NAMES = frozenset(("type", "object", "role"))  # keys of what an API names
REASONS = frozenset(("finish_reason", "stop_reason"))


def shape_of(body: bytes, always: bool = False) -> Shape:
    """Return the shape of an answer, or of all events of a stream together.

    Events that name their type have one shape per type, and their order counts. With `always`, the answer is the
    same every time, so that its end counts, and the order of the parts in a chat's stream.
    """
    named = NAMES | REASONS if always else NAMES
    text = body.decode("utf-8")
    if not text:
        return "nothing"
    if not text.lstrip().startswith(("data:", "event:")):
        return _shape(json.loads(text), named)
    data = [line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")]
    events = [json.loads(name) for name in data if name != "[DONE]"]
    ends = {"ends": "[DONE]" if data[-1] == "[DONE]" else "otherwise"}
    if "type" not in events[0]:
        order = {"order": _order(events)} if always else {}
        return {"events": _together(events, named), **order, **ends}
    types = [event["type"] for event in events]
    each = {name: _together([event for event in events if event["type"] == name], named) for name in types}
    return {"events": each, "order": " ".join(name for name, _ in groupby(types)), **ends}


def _order(events: list[Any]) -> str:
    """Return the parts that the chunks of a chat bring, in order, without texts, which depend on the model."""
    brought: list[str] = []
    for choice in (choice for event in events for choice in event["choices"]):
        brought += sorted(choice.get("delta", {}).keys() - {"content"})
        brought += ["the end"] if choice["finish_reason"] else []
    return ", ".join(name for name, _ in groupby(brought))


def _together(values: list[Any], words: frozenset[str]) -> Shape:
    """Return a shape that allows all of these."""
    whole, *shapes = (_shape(value, words) for value in values)
    for shape in shapes:
        whole = _merged(whole, shape)
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
            shapes = [_shape(item, words) for item in value]
            while len(shapes) > 1:
                shapes[:2] = [_merged(*shapes[:2])]
            return shapes
        case dict():
            if value and all(isinstance(item, float) for item in value.values()):
                return {"(a token)": "number"}  # OpenAI's log probabilities of texts
            return {
                str(key): f"={name}" if key in words and isinstance(name, str) else _shape(name, words)
                for key, name in value.items()
            }
    raise TypeError(value)


def _merged(item: Shape, other: Shape) -> Shape:
    """Return a shape that allows either."""
    match item, other:
        case dict(), dict():
            keys = [*item, *(key for key in other if key not in item)]
            return {
                key: _merged(item[key], other[key]) if key in item and key in other else item.get(key, other.get(key))
                for key in keys
            }  # fmt: skip
        case list(), list():
            return [_merged(item[0], other[0])] if item and other else item or other
        case str(), str():
            return "|".join(sorted({*item.split("|"), *other.split("|")}))
    return item if other == "nothing" else other if item == "nothing" else f"{item} or {other}"


def misses(theirs: Shape, ours: Shape, path: str = "") -> list[str]:
    """Return the paths of their shape that ours lacks."""
    match theirs, ours:
        case dict(), dict():
            names = [f"{path}.{key}" for key in theirs if key not in ours]
            for key in theirs.keys() & ours.keys():
                names += misses(theirs[key], ours[key], f"{path}.{key}")
            return sorted(names)
        case list(), list():
            return misses(theirs[0], ours[0], f"{path}[]") if theirs and ours else []
        case str(), str():
            same = set(theirs.split("|")) & set(ours.split("|"))
            words = {word for word in theirs.split("|") if word.startswith("=")}
            if words - same:
                return [f"{path}: {theirs}, {ours}"]
            return [] if same or "nothing" in (theirs, ours) else [f"{path}: {theirs}, {ours}"]
    return [] if "nothing" in (theirs, ours) else [f"{path}: of another kind"]
