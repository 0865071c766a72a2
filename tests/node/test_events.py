"""Snapshots, merge patches, and listeners that fall behind."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from app.core.wire_json import apply_merge_patch
from app.node.control import state_routes
from app.node.events import KEPT, MAX_WAITING, Event, Events, Json


async def test_a_listener_gets_a_snapshot_and_then_changes() -> None:
    state = {"a": 1, "b": {"c": 2}}
    events = Events(lambda: {**state}, "one")
    async with asyncio.TaskGroup() as group:
        runner = group.create_task(events.run(), name="events")
        async with aclosing(events.listen()) as stream:
            assert await anext(stream) == Event("one-1", "snapshot", {"a": 1, "b": {"c": 2}})
            state["a"] = 5
            events.changed()
            assert await anext(stream) == Event("one-2", "change", {"a": 5})
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
            event = await anext(stream)
            whole = event.name == "snapshot"
            seen = dict(event.data) if whole else apply_merge_patch(seen, event.data)
            names.append(event.name)
        assert "snapshot" in names


async def beginning(events: Events, after: str, n: int) -> list[Event]:
    """The first `n` that a listener gets."""
    async with aclosing(events.listen(after)) as stream:
        return [await anext(stream) for _ in range(n)]


async def test_whoever_returns_gets_what_came_since() -> None:
    state = {"n": 0}
    events = Events(lambda: {**state}, "one")
    async with aclosing(events.listen()) as stream:
        assert (await anext(stream)).id == "one-1"
        for n in (1, 2):
            state["n"] = n
            events._publish()
    state["n"] = 3  # while nobody listened
    changes = [Event(f"one-{n + 1}", "change", {"n": n}) for n in (1, 2, 3)]
    assert await beginning(events, "one-1", 4) == [Event("one-1", "resumed", {}), *changes]
    assert await beginning(events, "one-3", 2) == [Event("one-3", "resumed", {}), changes[2]]
    assert await beginning(events, "one-4", 1) == [Event("one-4", "resumed", {})]
    async with aclosing(events.listen("one-4")) as stream:  # and each change from then on
        await anext(stream)
        state["n"] = 4
        events._publish()
        assert await anext(stream) == Event("one-5", "change", {"n": 4})


@pytest.mark.parametrize("after", ["one-99", "two-1", "one", "", "one--1", "one-01", "é\n-1"])
async def test_what_this_node_does_not_know_begins_with_a_snapshot(after: str) -> None:
    events = Events(lambda: {"n": 7}, "one")
    assert await beginning(events, after, 1) == [Event("one-1", "snapshot", {"n": 7})]


async def test_changes_too_old_are_not_kept() -> None:
    state = {"n": 0}
    events = Events(lambda: {**state}, "one")
    async with aclosing(events.listen()):
        pass
    async with aclosing(events.listen()) as stream:
        await anext(stream)
        for n in range(KEPT + 1):
            state["n"] = n + 1
            events._publish()
    newest = Event(f"one-{KEPT + 2}", "snapshot", {"n": KEPT + 1})
    assert await beginning(events, "one-1", 1) == [newest]
    assert (await beginning(events, "one-2", 1))[0].name == "resumed"


async def test_each_node_has_a_life_of_its_own() -> None:
    first, second = [await beginning(Events(lambda: {"a": 1}), "", 1) for _ in range(2)]
    assert first[0].id != second[0].id


async def test_where_nothing_happens_a_line_says_that_the_node_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_routes.HEARTBEAT_SECONDS == 10  # UX.md T8; the window waits for three of them
    monkeypatch.setattr(state_routes, "HEARTBEAT_SECONDS", 0.01)
    events = Events(lambda: {"a": 1})
    async with aclosing(state_routes.with_heartbeat(events.listen())) as stream:
        assert (await anext(stream)).startswith(b"event: snapshot\nid: ")
        assert [await anext(stream) for _ in range(2)] == [b": alive\n\n"] * 2
