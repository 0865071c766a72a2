"""Answers of the journal as values: their times add up, their machines are told apart."""

from __future__ import annotations

from app.gui.activity.journal_feed import answer_of, happened_of, together
from tests.gui.activity.made import STAGES, told


def test_the_time_of_an_answer_is_split_into_its_phases() -> None:
    answer = answer_of(told(tokens=11, queued_s=0.5, ttft_s=2.0, decode_tok_s=10.0))
    assert answer.decode_s == 1.0
    assert answer.computed_s == 2.5
    assert answer_of(told(tokens=1, decode_tok_s=0.0)).decode_s == 0.0
    assert answer_of(told(ttft_s=None, end="stopped")).computed_s == 0.0


def test_faster_is_more_and_off_is_a_share_of_what_was_measured() -> None:
    answer = answer_of(told(ttft_s=1.0, forecast_ttft_s=1.5, decode_tok_s=8.0, forecast_tok_s=10.0))
    assert answer.faster == (0.5, 8.0 / 10.0 - 1)
    assert answer.errors == (0.5, 0.25)


def test_only_answers_alone_and_of_some_length_are_compared() -> None:
    assert answer_of(told()).is_compared
    assert not answer_of(told(alone=False)).is_compared
    assert not answer_of(told(tokens=3)).is_compared
    assert not answer_of(told(forecast_ttft_s=None, forecast_tok_s=None)).is_compared


def test_the_guide_is_called_so_in_the_log() -> None:
    told = {
        "number": 1, "at": 1.0, "code": "log_model_ready", "facts": {"model": "guide", "seconds": 1.5},
        "kind": "model", "sentence": "guide is ready, after 1.5 seconds.",
    }  # fmt: skip
    assert happened_of(told).sentence == "Guide is ready, after 1.5 seconds."
    other = told | {"code": "log_machine_came", "facts": {"machine": "guide"}, "kind": "machine"}
    assert happened_of(other).sentence == "guide is connected."


def test_the_stages_of_one_machine_are_added_up() -> None:
    den, attic = together(answer_of(told(stages=STAGES)).stages)
    assert (den.machine, den.layers, den.busy_s) == ("den", ((0, 2), (6, 8)), 0.5)
    assert (attic.machine, attic.wait_s, attic.n_bytes) == ("attic", 0.2, 30)
