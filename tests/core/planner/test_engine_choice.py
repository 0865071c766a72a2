"""The choice of an engine by measured speed."""

from __future__ import annotations

from dataclasses import replace

from app.core.planner.engine_choice import is_faster, typical_answer_s
from app.core.planner.speed_estimates import Speed

ROWS = 128
USUAL = Speed(0.001, 0.0001, 1e-7, 0.02, 1e-6, 0.002, 0.001, 0.0001)


def test_a_typical_answer_has_a_prompt_and_two_hundred_tokens() -> None:
    assert abs(typical_answer_s(USUAL, ROWS) - (4 * (0.002 + 8 * 0.02) + 200 * (0.002 + 8 * 0.001))) < 1e-12


def test_an_engine_must_be_clearly_faster() -> None:
    assert not is_faster(USUAL, USUAL, ROWS)
    assert not is_faster(replace(USUAL, layer_s=0.00099), USUAL, ROWS)
    assert is_faster(replace(USUAL, layer_s=0.0005), USUAL, ROWS)


def test_slow_prompts_can_outweigh_fast_words() -> None:
    assert not is_faster(replace(USUAL, layer_s=0.0005, chunk_s=0.2), USUAL, ROWS)


def test_only_large_differences_count_while_other_programs_compute() -> None:
    busy = replace(USUAL, other_load=0.5)
    assert is_faster(replace(busy, layer_s=0.0005), USUAL, ROWS) is None
    assert is_faster(replace(busy, layer_s=0.02, chunk_s=0.4), USUAL, ROWS) is False
    assert is_faster(replace(USUAL, step_s=0.0, layer_s=0.0001, chunk_s=0.002), busy, ROWS) is True
