"""Answers of the journal as values: their times add up, their machines are told apart."""

from __future__ import annotations

from app.api.computer import EventEntry
from app.core.errors import Fact
from app.gui.activity.journal_feed import (
    by_machine,
    computed_seconds,
    decode_seconds,
    event_sentence,
    forecast_errors,
    is_comparable,
    relative_speedups,
)
from tests.gui.activity.made import STAGES, answer


def test_the_time_of_an_answer_is_split_into_its_phases() -> None:
    entry = answer(tokens=11, queued_s=0.5, ttft_s=2.0, decode_tok_s=10.0)
    assert decode_seconds(entry) == 1.0
    assert computed_seconds(entry) == 2.5
    assert decode_seconds(answer(tokens=1, decode_tok_s=0.0)) == 0.0
    assert computed_seconds(answer(ttft_s=None, end="stopped")) == 0.0


def test_faster_is_more_and_off_is_a_share_of_what_was_measured() -> None:
    entry = answer(ttft_s=1.0, forecast_ttft_s=1.5, decode_tok_s=8.0, forecast_tok_s=10.0)
    assert relative_speedups(entry) == (0.5, 8.0 / 10.0 - 1)
    assert forecast_errors(entry) == (0.5, 0.25)


def test_only_answers_alone_and_of_some_length_are_compared() -> None:
    assert is_comparable(answer())
    assert not is_comparable(answer(alone=False))
    assert not is_comparable(answer(tokens=3))
    assert not is_comparable(answer(forecast_ttft_s=None, forecast_tok_s=None))


def test_the_guide_is_called_so_in_the_log() -> None:
    facts: dict[str, Fact] = {"model": "guide", "seconds": 1.5}
    assert event_sentence(EventEntry(code="log_model_ready", facts=facts)) == "Guide is ready after 1.5 seconds."
    other = EventEntry(code="log_machine_came", facts={"machine": "guide"})
    assert event_sentence(other) == "guide connected."


def test_the_stages_of_one_machine_are_added_up() -> None:
    den, attic = by_machine(answer(stages=STAGES).stages)
    assert (den.machine, den.layers, den.busy_s) == ("den", ((0, 2), (6, 8)), 0.5)
    assert (attic.machine, attic.wait_s, attic.n_bytes) == ("attic", 0.2, 30)
