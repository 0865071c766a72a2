"""A forecast that was made from numbers which do not hold is mended by itself, while the model stays loaded."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.api import plans
from app.api.requests import LoadModel
from app.core.planner.placement import Workload
from app.core.planner.plan import plan
from app.node.models.outcomes import refresh_forecast, remeasure
from testbed.households import MIB, link, machine, model, speed
from tests.node.pool import BUSY, node

MODEL = model([100 * MIB] * 8)
DEN = machine("den", 1600, speed(0.002))
ATTIC = machine("attic", 1600, speed(0.002), link())
SLOWER = 30.0


def running() -> Any:
    chosen = plan(DEN, [ATTIC], MODEL, Workload(context=1024), [1, 6, 1])
    return SimpleNamespace(
        plan=chosen, state=SimpleNamespace(described=plans.Plan(model="m")),
        entry=SimpleNamespace(model=MODEL, name="m"), order=LoadModel(model="m"),
        last_request_s=time.monotonic(),
    )  # fmt: skip


def test_a_machine_that_is_quicker_than_it_was_makes_the_forecast_better() -> None:
    item = running()
    refresh_forecast(item, [DEN, replace(ATTIC, speed=speed(0.001), lends_bytes=1)])
    assert item.state.plan.stages == item.plan.stages
    assert item.state.plan.forecast.decode_tok_s > 1.2 * item.plan.forecast.decode_tok_s
    assert item.state.described.forecast.decode_tok_s == item.state.plan.forecast.decode_tok_s
    assert item.state.plan.machines[1].lends_bytes == ATTIC.lends_bytes  # what it was decided from


def test_a_machine_that_cannot_be_measured_leaves_it_as_it_is() -> None:
    item = running()
    refresh_forecast(item, [DEN, replace(ATTIC, speed=None)])
    assert item.state.described.forecast is None
    assert vars(item.state).keys() == {"described"}


async def test_it_waits_until_nobody_asks_and_until_all_could_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.node.models.outcomes.REST_S", 0.05)
    item, tries = running(), list[int]()

    async def speeds(*_: Any) -> dict[str, Any]:
        tries.append(1)
        return {DEN.id: DEN.speed, ATTIC.id: ATTIC.speed if len(tries) > 1 else None}

    planner_inputs: Any = SimpleNamespace(speeds=speeds, machines=lambda *_: (DEN, [ATTIC]))

    async def asks() -> None:
        for _ in range(10):
            item.last_request_s = time.monotonic()
            await asyncio.sleep(0.02)
        assert not tries

    async with asyncio.TaskGroup() as group:
        group.create_task(asks())
        assert await remeasure(item, planner_inputs)
    assert len(tries) == 2
    assert item.state.described.forecast is not None


@pytest.mark.long
async def test_a_measurement_of_a_busy_minute_is_made_again_after_an_answer(tmp_path: Path) -> None:
    with node(tmp_path, "den") as first:
        async with first.client() as client:
            await client.work("POST", "/speeds", {"model": "guide"})
    book = tmp_path / "speeds.json"
    kept = json.loads(book.read_text())
    for entry in kept["entries"].values():
        for name in set(entry) - {"measured_at", "other_load", "repeat"}:
            entry[name] *= SLOWER
        entry |= {"other_load": 0.0, "repeat": None}
    book.write_text(json.dumps(kept))
    with node(tmp_path, "den") as again:
        async with again.client() as client:
            loaded = (await client.work("POST", "/load", {"model": "guide"}))["loaded"]
            slow = loaded["forecast"]["decode_tok_s"]
            order = {"prompt_ids": [5] * 70, "max_tokens": 60, "ignore_end": True, "guesses": False}
            await client.work("POST", "/ask", order)
            late = time.monotonic() + 15 * BUSY
            while (now := (await client.get("/status"))["loaded"])["forecast"]["decode_tok_s"] < SLOWER / 6 * slow:
                assert time.monotonic() < late, f"{slow} -> {now['forecast']}, {now['last_answer']}"
                await asyncio.sleep(0.2)
            reply = await client.work("POST", "/plan", {"model": "guide", "shape": "one"})
    assert reply["forecast"]["decode_tok_s"] > SLOWER / 6 * slow
