"""Tests of the states that a placement keeps, and of the words for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.placement import Candidate, Plan, Workload
from app.core.planner.plan import plan
from app.core.planner.speed_estimates import Speed
from app.core.reasons import said
from app.machine.hardware.devices import memory_copy_s_per_byte
from app.node.planning.planning import RecurrentStateRule
from backends.contract import DEFAULT_CHECKPOINTS, MAX_CHECKPOINTS, CheckpointRule

FAMILIES = Path(__file__).parents[2] / "families"
SPEED = Speed(0.003, 0.001, 0, 0.06, 0, 0.0002, 0.005, 0.002)
GIB = 1 << 30


def unread(_: str) -> None:
    """Nobody read a prompt yet."""


def model(name: str) -> Model:
    header = read_header(FAMILIES / f"{name}.gguf")
    return model_of(header, name, "0" * 64)


def placed(of: Model, lends_mib: int, speed: Speed | None = SPEED) -> Plan:
    host = Candidate(MachineId("d" * 64), "den", lends_mib << 20, speed)
    return plan(host, [], of, Workload(512))


async def test_a_hybrids_plan_says_what_is_kept() -> None:
    hybrid, rule = model("qwen3-5"), RecurrentStateRule(unread)
    reason = await rule.with_reason(placed(hybrid, 1000), hybrid)
    assert reason.reasons[-1].code == "states_by_cost"
    assert "reading a token again" in said(reason.reasons[-1])
    assert rule.keep(reason, hybrid) == CheckpointRule(MAX_CHECKPOINTS, 1)  # tiny states, a slow machine
    unknown = await rule.with_reason(placed(hybrid, 1000, speed=None), hybrid)
    assert unknown.reasons[-1].code == "states_kept"


async def test_what_reading_takes_is_forecast_until_it_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same plan keeps states after shorter prompts where reading took longer than forecast."""
    monkeypatch.setattr("app.node.planning.planning.memory_copy_s_per_byte", lambda: 1e-9)
    hybrid = model("qwen3-5")
    large = replace(hybrid, state_bytes=tuple(64 * state_byte * 1024 for state_byte in hybrid.state_bytes))
    result = placed(large, 1 << 20)
    assert result.forecast is not None
    row_ms, rows = result.forecast.ttft_s / result.workload.prompt * 1000, []
    for measured in (None, 1.0, 4.0, 0.25):
        rule = RecurrentStateRule({large.name: measured}.get)
        reason = await rule.with_reason(result, large)
        assert reason.reasons[-1].facts["row_ms"] == round(row_ms * (measured or 1), 2)
        rows.append(rule.keep(result, large).least_rows)
    forecast, as_forecast, slower, quicker = rows
    assert slower < forecast == as_forecast < quicker


async def test_large_states_on_a_quick_machine_are_read_again() -> None:
    hybrid, rule = model("qwen3-5"), RecurrentStateRule(unread)
    large = replace(hybrid, state_bytes=tuple(64 * state_byte * 1024 for state_byte in hybrid.state_bytes))
    quick = Speed(1e-6, 1e-7, 0, 1e-5, 0, 1e-6, 1e-6, 1e-6)
    reason = await rule.with_reason(placed(large, 1 << 20, quick), large)
    assert rule.keep(reason, large).least_rows > 100


async def test_without_room_nothing_is_kept() -> None:
    hybrid, rule = model("qwen3-5"), RecurrentStateRule(unread)
    result = placed(hybrid, 1000)
    needs = sum(stage.total_bytes for stage in result.stages)
    reserved = MAX_CHECKPOINTS * result.workload.slots * sum(hybrid.state_bytes)
    tight = Candidate(result.machines[0].id, "den", needs - reserved)
    result = await rule.with_reason(replace(result, machines=(tight,)), hybrid)
    assert result.reasons[-1].code == "states_no_room"
    assert rule.keep(result, hybrid).marks == 0


@pytest.mark.parametrize("name", ["llama", "gemma3"])
async def test_models_without_states_say_nothing_of_them(name: str) -> None:
    plain, rule = model(name), RecurrentStateRule(unread)
    result = placed(plain, 1000)
    assert await rule.with_reason(result, plain) == result
    assert rule.keep(result, plain) == DEFAULT_CHECKPOINTS


def test_copying_is_measured() -> None:
    assert 1e-12 < memory_copy_s_per_byte() < 1e-6
