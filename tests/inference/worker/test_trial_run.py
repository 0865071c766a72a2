"""The line through a prompt's chunks."""

from __future__ import annotations

import pytest

from app.inference.worker.layer_benchmark import DEPTH, fit_line


def test_chunks_lie_on_a_line_and_one_slow_moment_does_not_bend_it() -> None:
    taken = [0.5 + 0.0004 * 64 * n for n in range(8)]
    assert fit_line(taken, 64) == pytest.approx((0.5, 0.0004))
    taken[5] *= 3
    first, slope = fit_line(taken, 64)
    assert first == pytest.approx(0.5, rel=0.02)
    assert slope == pytest.approx(0.0004, rel=0.1)


def test_a_line_never_falls_and_is_never_steeper_than_attention_can_be() -> None:
    first, slope = fit_line([0.6, 0.5, 0.4], 64)
    assert (first, slope) == (0.5, 0.0)
    assert fit_line([0.1, 1.0, 2.0], 64)[1] == pytest.approx(1.0 / DEPTH)
