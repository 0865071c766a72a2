"""Tests of what is measured for a model, and of the report on one whose layers cannot be measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog.families.effort_reader import stand_in_effort, stand_in_shape
from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from app.catalog.stages import synthetic_stage
from app.core.errors import BadInput, Reason
from app.core.ids import MachineId
from app.core.planner.placement import Bottleneck, Candidate, Forecast, Part, Plan, Workload
from app.core.planner.speed_estimates import Speed
from app.core.reasons import said
from app.inference.worker.layer_benchmark import DEPTH
from app.node.planning.planning import with_forecast_basis, with_unmeasured_causes
from app.node.planning.speed_measurer import SpeedBasis, speed_basis

FAMILIES = Path(__file__).parents[2] / "families"
PACE = Bottleneck(Part.MACHINE, MachineId("0"), "den", 0.9)
SPEED = Speed(0.003, 0.001, 1e-6, 0.06, 2e-5, 0.0002, 0.005, 0.002)


def basis(name: str) -> SpeedBasis:
    header = read_header(FAMILIES / f"{name}.gguf")
    return speed_basis(header, model_of(header, "m", "0" * 64))


@pytest.mark.parametrize("name", ["llama", "qwen3-moe", "phi3"])
def test_plain_layers_are_measured_themselves(name: str) -> None:
    result = basis(name)
    assert not result.is_estimate
    assert result.shape.architecture != "llama" or name == "llama"
    assert result.speed(SPEED, 64) is SPEED


@pytest.mark.parametrize("name", ["gemma3", "gpt-oss", "cohere2"])
def test_layers_with_a_window_are_measured_themselves_and_look_back_no_further(name: str) -> None:
    result = basis(name)
    assert not result.is_estimate
    speed = result.speed(SPEED, 64)
    assert speed is not None
    assert not speed.estimated
    assert speed.layer_s == SPEED.layer_s
    assert 0 < speed.window < DEPTH  # as these tiny models have it
    seen_s = DEPTH * speed.position_s + speed.window * speed.window_position_s
    assert seen_s == pytest.approx(DEPTH * SPEED.position_s)  # what was measured
    chunk_s = DEPTH * speed.chunk_position_s + speed.window * speed.window_chunk_position_s
    assert chunk_s == pytest.approx(DEPTH * SPEED.chunk_position_s)


@pytest.mark.parametrize("name", ["qwen3-5", "deepseek-v3", "deepseek-v32", "llama4", "lfm2", "glm4"])
def test_layers_that_need_their_place_are_measured_themselves(name: str) -> None:
    result = basis(name)
    assert not result.is_estimate
    speed = result.speed(SPEED, 64)
    assert speed is not None
    assert not speed.estimated
    assert speed.layer_s == SPEED.layer_s
    assert result.speed(None, 64) is None


@pytest.mark.parametrize("name", ["qwen3-5", "llama"])
def test_for_layers_too_large_a_plain_layer_of_their_number_type_stands(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    own = basis(name)
    monkeypatch.setattr(synthetic_stage, "MAX_LAYER_BYTES", 1 << 10)
    result = basis(name)
    assert result.is_estimate
    assert result == own.instead
    assert result.shape == stand_in_shape("F16")
    speed = result.speed(SPEED, 64)
    assert speed is not None
    assert speed.estimated
    assert 0 < speed.layer_s < SPEED.layer_s  # they are tiny
    assert result.speed(None, 64) is None


def test_why_nothing_is_said_comes_from_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic_stage, "MAX_LAYER_BYTES", 1 << 10)
    with pytest.raises(BadInput, match="unforecast_indexer"):
        basis("deepseek-v32")


def test_the_plan_says_it_in_place_of_what_was_not_measured() -> None:
    why = Reason("unforecast_indexer", {"architecture": "deepseek32"})
    missing = Reason("plan_unmeasured", {"machine": "den"})
    placed = Plan((), Workload(512), (Reason("plan_fits_host", {"machine": "den"}), missing))
    assert [reason.code for reason in with_forecast_basis(placed, why).reasons] == ["plan_fits_host", why.code]
    assert with_forecast_basis(placed, None) == placed


@pytest.mark.parametrize(
    ("machines", "is_estimate", "code"),
    [
        (1, False, "plan_measured"), (2, False, "plan_measured_links"), (2, True, "plan_estimated"),
    ],
)  # fmt: skip
def test_a_forecast_names_what_it_is_computed_from(machines: int, is_estimate: bool, code: str) -> None:
    forecast = Forecast(1.0, 9.0, 9.0, 9.0, (), PACE, is_estimate)
    items = tuple(Candidate(MachineId(str(n)), "den", 1 << 30) for n in range(machines))
    placed = Plan((), Workload(512), (), forecast=forecast, machines=items)
    assert [reason.code for reason in with_forecast_basis(placed, None).reasons] == [code]


def test_the_layer_in_their_place_is_itself_when_it_is_measured() -> None:
    shape = stand_in_shape("Q4_K")
    speed = SpeedBasis(shape, stand_in_effort(shape)).speed(SPEED, 64)
    assert speed is not None
    assert speed.layer_s == pytest.approx(SPEED.layer_s)


def test_a_plan_by_memory_says_why_a_machine_could_not_be_measured() -> None:
    missing = tuple(Reason("plan_unmeasured", {"machine": name}) for name in ("den", "attic"))
    placed = Plan((), Workload(512), (Reason("plan_fits_host", {"machine": "den"}), *missing))
    full = Reason("disk_failed", {"folder": "here", "why": "No space left on device"})
    reasons = with_unmeasured_causes(placed, {"den": full}.get).reasons
    assert [reason.code for reason in reasons] == ["plan_fits_host", "plan_unmeasurable", "plan_unmeasured"]
    assert "den could not be measured" in said(reasons[1])
    assert "No space left on device" in said(reasons[1])
    assert with_unmeasured_causes(placed, lambda _: None) == placed
