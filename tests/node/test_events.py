"""Snapshots, merge patches, and listeners that fall behind."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from app.core.merge_patch import patched
from app.node import control
from app.node.events import MAX_WAITING, Events, Json


async def test_a_listener_gets_a_snapshot_and_then_changes() -> None:
    state = {"a": 1, "b": {"c": 2}}
    events = Events(lambda: {**state})
    async with asyncio.TaskGroup() as group:
        runner = group.create_task(events.run(), name="events")
        async with aclosing(events.listen()) as stream:
            number, name, data = await anext(stream)
            assert (name, data) == ("snapshot", {"a": 1, "b": {"c": 2}})
            state["a"] = 5
            events.changed()
            assert await anext(stream) == (number + 1, "change", {"a": 5})
        runner.cancel()


async def test_a_listener_far_behind_gets_a_snapshot_again() -> None:
    state = {"n": 0}
    events = Events(lambda: {**state})
    async with aclosing(events.listen()) as stream:
        await anext(stream)
        for n in range(MAX_WAITING + 5):
            state["n"] = n + 1
            events._publish()
        names = []
        seen: Json = {"n": 0}
        while seen["n"] != MAX_WAITING + 5:
            _, name, data = await anext(stream)
            seen = dict(data) if name == "snapshot" else patched(seen, data)
            names.append(name)
        assert "snapshot" in names


async def test_where_nothing_happens_a_line_says_that_the_node_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert control.HEARTBEAT_SECONDS == 10  # UX.md T8; the window waits for three of them
    monkeypatch.setattr(control, "HEARTBEAT_SECONDS", 0.01)
    events = Events(lambda: {"a": 1})
    async with aclosing(control._with_heartbeat(events.listen())) as stream:
        assert (await anext(stream)).startswith(b"event: snapshot\nid: ")
        assert [await anext(stream) for _ in range(2)] == [b": alive\n\n"] * 2
