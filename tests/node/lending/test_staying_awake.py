"""Tests of when a sleep would interrupt something."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.api.snapshot import Snapshot
from app.core.lending.policy import Battery
from app.machine.power_events.keep_awake import WakeLock
from app.node.lending import sleep
from app.node.lending.sleep import is_needed, stay_awake
from tests.node.partial_snapshot import partial_snapshot

Json = dict[str, Any]
IDLE: Json = {"node": {"lending": {"state": "ready"}}, "answers": {"running": 0, "waiting": 0}}


def lends(state: str) -> Json:
    return {"node": {"lending": {"state": state}}}


@pytest.mark.parametrize(
    ("more", "battery", "needed"),
    [
        ({}, None, False),
        ({"answers": {"running": 1, "waiting": 0}}, None, True),
        ({"answers": {"running": 0, "waiting": 1}}, None, True),
        ({"answers": {"running": 1, "waiting": 0}}, Battery(80, plugged=True), True),
        ({"answers": {"running": 1, "waiting": 0}}, Battery(80, plugged=False), False),
        (lends("working"), None, True),
        (lends("lending"), None, False),  # layers that only lie here need nobody awake
        (lends("paused") | {"answers": {"running": 1}}, None, False),
        ({"loaded": {"state": "loading"}}, None, True),
        ({"loaded": {"state": "ready"}}, None, False),
        ({"loaded": {"state": "ready"}, "beside": [{"state": "loading"}]}, None, True),
        ({"downloads": {"a": {"state": "running"}}}, None, True),
        ({"downloads": {"a": {"state": "paused"}, "b": {"state": "done"}}}, None, False),
    ],
)
def test_what_keeps_it_awake(more: Json, battery: Battery | None, needed: bool) -> None:
    assert is_needed(partial_snapshot(IDLE | more), battery) is needed


class Noted(WakeLock):
    """Keeps what was asked."""

    def __init__(self) -> None:
        super().__init__("none")
        self.said: list[str] = []

    def hold(self) -> None:
        self.said.append("hold")

    def release(self) -> None:
        self.said.append("release")


async def test_it_follows_and_ends_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sleep, "LOOK_SECONDS", 0.01)
    noted, shown = Noted(), [IDLE | lends("working"), IDLE]

    def snapshot() -> Snapshot:
        return partial_snapshot(shown.pop(0) if len(shown) > 1 else shown[0])

    async with asyncio.TaskGroup() as group:
        task = group.create_task(stay_awake(snapshot, noted, lambda: None), name="stay awake")
        while len(noted.said) < 3:  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.01)
        task.cancel()
    assert noted.said[:2] == ["hold", "release"]
    assert noted.said[-1] == "release"
