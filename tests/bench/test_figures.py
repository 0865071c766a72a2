"""Figures from token times: what is counted, over which span, and what is refused."""

from __future__ import annotations

import pytest

from bench.figures import Timeline, agreement, alone, percentile, ratios, steady, summaries, summary, together


def test_one_stream() -> None:
    assert alone(Timeline(((2.0, 2.1, 2.2, 2.3),))) == {"ttft_s": 2.0, "decode_ms": pytest.approx(100.0)}


def test_one_token_has_no_pace() -> None:
    assert alone(Timeline(((2.0,),)))["decode_ms"] is None


def test_several_streams() -> None:
    line = Timeline(((1.0, 2.0, 3.0, 4.0), (2.0, 3.0, 4.0, 5.0)))
    result = together(line)
    assert result["total_tok_s"] == pytest.approx(8 / 5)
    assert result["steady_tok_s"] == pytest.approx(4 / 2)  # from 2 s to 4 s, two tokens of each
    assert result["ttft_p99_s"] == 2.0


def test_never_all_decoding() -> None:
    assert steady(Timeline(((1.0, 2.0), (2.0, 3.0)))) is None


@pytest.mark.parametrize("times", [(), ((),), ((1.0,), ())])
def test_a_stream_without_tokens_is_refused(times: tuple[tuple[float, ...], ...]) -> None:
    with pytest.raises(ValueError, match="without tokens"):
        Timeline(times)


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 2.0), (0.51, 3.0), (0.99, 4.0), (1.0, 4.0)])
def test_percentile_is_a_value_that_was_measured(share: float, value: float) -> None:
    assert percentile([3.0, 1.0, 4.0, 2.0], share) == value


def test_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="percentile"):
        percentile([], 0.5)


def test_summary() -> None:
    result = summary([1.0, 2.0, 6.0])
    assert (result.mean, result.median, result.low, result.high) == (3.0, 2.0, 1.0, 6.0)
    assert result.spread == pytest.approx(5 / 3)
    assert summary([1.0]).stdev == 0.0
    with pytest.raises(ValueError, match="nothing"):
        summary([])


def test_ratios_go_round_by_round() -> None:
    result = ratios([2.0, 3.0, None, 5.0], [1.0, 2.0, 1.0, None])
    assert result is not None
    assert (result.low, result.high, result.n_runs) == (1.5, 2.0, 2)
    assert ratios([None], [1.0]) is None


def test_summaries_leave_out_what_is_missing() -> None:
    result = summaries([{"a": 1.0, "b": None}, {"a": 3.0, "b": None}])
    assert list(result) == ["a"]
    assert result["a"].mean == 2.0


@pytest.mark.parametrize(("ours", "theirs", "n"), [([1, 2, 3], [1, 2, 4], 2), ([1], [1, 2], 1), ([], [1], 0)])
def test_agreement(ours: list[int], theirs: list[int], n: int) -> None:
    assert agreement(ours, theirs) == n
