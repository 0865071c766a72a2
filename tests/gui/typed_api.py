"""Values of the loopback API from JSON, as the window receives them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from app.api.plans import LoadedModel
from app.api.responses import Answer, AnswerLine
from app.api.snapshot import Snapshot
from app.decoding import convert
from app.gui.api.node_state import NodeState

Json = dict[str, Any]


def answer_line(json: Json) -> AnswerLine:
    return convert(json, AnswerLine)


def finished_answer(json: Json) -> Answer:
    return convert(json, Answer)


def loaded_model(json: Json) -> LoadedModel:
    return convert({"model": "m", **json}, LoadedModel)


def pool_of(snapshot: Json, *, is_there: bool = True) -> NodeState:
    """Return the state of a node that has sent this snapshot."""
    nodes = SimpleNamespace(
        is_there=is_there, snapshot=snapshot, now=convert(snapshot, Snapshot), node=snapshot.get("node") or {}
    )
    return cast("NodeState", nodes)
