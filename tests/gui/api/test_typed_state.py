"""The window's snapshot as a value."""

from __future__ import annotations

from typing import cast

from app.gui.api.launch import Launcher
from app.gui.api.node_client import NodeClient
from app.gui.api.node_state import Link, NodeState


def state_of(**snapshot: object) -> NodeState:
    state = NodeState(cast("Launcher", None), NodeClient())
    state.link, state.snapshot = Link.THERE, snapshot
    return state


def test_the_snapshot_is_read_again_when_it_is_another(qapp: object) -> None:
    state = state_of(machines={"a": {"id": "a", "name": "den", "this": True}})
    assert state.now.machines["a"].name == "den"
    state.snapshot = {"machines": {"b": {"id": "b", "name": "attic"}}, "beside": [{"model": "guide"}]}
    assert [machine.name for machine in state.now.sorted_machines] == ["attic"]
    assert [model.model for model in state.now.models] == ["guide"]
    assert state.now is state.now


def test_a_model_that_was_still_loading_is_gone_with_its_node(qapp: object) -> None:
    loading, ready = {"model": "big", "state": "loading"}, {"model": "guide", "state": "ready"}
    state = state_of(loaded=loading, beside=[ready], embeds=loading)
    assert state.now.model(None) is not None
    state.link = Link.AWAY
    assert state.now.model("big") is None
    assert state.now.embeds is None
    assert state.now.models == [state.now.model("guide")]
