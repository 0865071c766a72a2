"""Tests of the cost of layers that were not measured, from one that was: sums by hand, and invariants."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.planner.forecast import Step, step_layer_s
from app.core.planner.speed_estimates import WIDE, Effort, Experts, MeasuredLayer, Speed, estimate_speed

LAYER = Effort(30e6, 60e6, 4096, 50e6, 60e6)
SPEED = Speed(0.003, 0.001, 1e-6, 0.06, 2e-5, 0.0002, 0.005, 0.002)
MEASURED = MeasuredLayer(SPEED, LAYER, 64)
EXPERTS = Experts(64, 4, 120e6, 240e6)
some = st.floats(1e5, 1e9)


def test_the_measured_layer_itself_comes_out_as_it_was_measured() -> None:
    again = replace(estimate_speed(MEASURED, LAYER), estimated=False)
    for name in Speed.__slots__:
        assert getattr(again, name) == pytest.approx(getattr(SPEED, name)), name


def test_one_row_pays_for_the_experts_it_takes() -> None:
    speed = estimate_speed(MEASURED, Effort(10e6, 20e6, 0, 0, 0, EXPERTS))
    assert speed.layer_s == pytest.approx((10e6 + 120e6 * 4 / 64) * 1e-10)
    assert speed.estimated


def test_further_rows_need_further_experts() -> None:
    dense = estimate_speed(MEASURED, Effort(17.5e6, 35e6, 0, 0, 0))
    sparse = estimate_speed(MEASURED, Effort(10e6, 20e6, 0, 0, 0, EXPERTS))
    assert sparse.layer_s == pytest.approx(dense.layer_s)
    assert sparse.layer_row_s > 1.2 * dense.layer_row_s
    assert sparse.chunk_s > dense.chunk_s  # 64 rows: nearly every expert is read for a few of them
    assert EXPERTS.read(1) == pytest.approx(4)
    assert 0.95 * 64 < EXPERTS.read(64) < 64


def test_states_cost_the_same_wherever_a_token_stands() -> None:
    speed = estimate_speed(MEASURED, Effort(10e6, 20e6, 0, 0, 0, state_values=1e6, state_bytes=4e6))
    near, far = (step_layer_s(speed, Step(1, position, 1), 64) for position in (0, 10_000))
    assert near == far == pytest.approx((10e6 + 8e6) * 1e-10)


def test_a_window_ends_the_growth() -> None:
    speed = estimate_speed(MEASURED, Effort(10e6, 20e6, 1024, 0, 0, window=512, window_position=3072))
    at = [step_layer_s(speed, Step(1, position, 1), 64) for position in (0, 512, 1024)]
    assert at[1] - at[0] == pytest.approx(512 * 1e-6)
    assert at[2] - at[1] == pytest.approx(512 * 1e-6 / 4)
    chunk = [step_layer_s(speed, Step(64, position, 0), 64) for position in (512, 1024)]
    assert chunk[1] - chunk[0] == pytest.approx(512 * 2e-5 / 4)


@given(n_bytes=some, more=st.floats(1, 10), rows=st.integers(1, WIDE))
def test_more_to_read_is_never_quicker(n_bytes: float, more: float, rows: int) -> None:
    less, much = (estimate_speed(MEASURED, Effort(n_bytes * by, 2 * n_bytes * by, 0, 0, 0)) for by in (1, more))
    step = Step(rows, 0, rows)
    assert step_layer_s(less, step, 64) <= step_layer_s(much, step, 64) * (1 + 1e-9)


@given(used=st.integers(1, 64), rows=st.integers(1, 64))
def test_no_more_experts_are_read_than_there_are_or_than_rows_pick(used: int, rows: int) -> None:
    read = Experts(64, used, 1e6, 2e6).read(rows)
    assert used - 1e-9 <= read <= min(64, rows * used) + 1e-9
