"""The record of what guesses brought: what is learned, what a plan says of it, and what a damaged file gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.core.planner.placement import Plan
from app.inference.pipeline.completion import Summary
from app.node.planning import guess_history
from app.node.planning.guess_history import GuessHistory

MODEL = "SmolLM2"


def plan(n_machines: int = 2) -> Plan:
    return cast("Plan", SimpleNamespace(stages=[SimpleNamespace(machine=str(number)) for number in range(n_machines)]))


SUMMARY = Summary(
    text="", token_ids=tuple(range(20)), prompt_tokens=9, reused_tokens=0, before_s=0.0, queued_s=0.0, ttft_s=0.1,
    decode_tok_s=10.0, finish_reason="stop", stop=None, stages=(), guessed=10, guess_took_s=2.0, guess_plain_s=3.0,
)  # fmt: skip


def learned(file: Path, *summaries: Summary) -> GuessHistory:
    history = GuessHistory(file)
    for summary in summaries:
        history.learn(plan(), MODEL, summary)
    history.save(history.content())
    return history


def test_the_gain_is_that_of_all_answers_together(tmp_path: Path) -> None:
    file = tmp_path / "guesses.json"
    slow = replace(SUMMARY, guess_took_s=6.0, guess_plain_s=5.0)
    history = learned(file, SUMMARY, SUMMARY, slow)
    for each in (history, GuessHistory(file)):
        assert each.gain(plan(), MODEL) == (1.1, 3)
        (reason,) = each.reasons(plan(), MODEL)
        assert (reason.code, reason.facts) == ("plan_guess_gain", {"times": "1.10", "count": 3})


def test_too_few_answers_other_models_and_other_pools_say_nothing(tmp_path: Path) -> None:
    history = learned(tmp_path / "guesses.json", SUMMARY, SUMMARY)
    assert history.reasons(plan(), MODEL) == ()
    history.learn(plan(), MODEL, SUMMARY)
    assert history.reasons(plan(), MODEL)
    assert history.reasons(plan(3), MODEL) == ()
    assert history.reasons(plan(), "another") == ()


def test_short_answers_and_those_without_measured_steps_are_not_counted(tmp_path: Path) -> None:
    history = GuessHistory(tmp_path / "guesses.json")
    assert not history.learn(plan(), MODEL, replace(SUMMARY, token_ids=(1, 2, 3)))
    assert not history.learn(plan(), MODEL, replace(SUMMARY, guess_took_s=0.0))


def test_the_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guess_history, "MOST_KEYS", 2)
    history = GuessHistory(tmp_path / "guesses.json")
    for name in ("a", "b", "c"):
        for _ in range(guess_history.MOST_ANSWERS + 5):
            history.learn(plan(), name, SUMMARY)
    history.save(history.content())
    again = GuessHistory(tmp_path / "guesses.json")
    assert [again.gain(plan(), name) is not None for name in ("a", "b", "c")] == [False, True, True]
    assert again.gain(plan(), "c") == (1.5, guess_history.MOST_ANSWERS)


@pytest.mark.parametrize("content", ["", "[]", '{"answers": {"x": [{"took_s": -1, "plain_s": 1}]}}', '{"answers": 3}'])
def test_a_damaged_file_says_nothing(tmp_path: Path, content: str) -> None:
    file = tmp_path / "guesses.json"
    file.write_text(content)
    history: Any = GuessHistory(file)
    assert history.gain(plan(), "x") is None
    assert history.learn(plan(), MODEL, SUMMARY)
