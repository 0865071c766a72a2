"""Many seeds in batches: what is left to play, what is kept of them, and what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.outcome import ROOT
from tests.simulation import page, soak
from tests.simulation.judge import Tally
from tests.simulation.soak import BATCH, Batch
from tests.simulation.world import Story, told


def batch(first: int, n: int = BATCH, wrong: dict[str, str] | None = None) -> Batch:
    return Batch(first, n, 5.0, wrong or {}, Tally(100, 98, 1, 40, 40), "abc")


def test_what_was_played_is_not_played_again() -> None:
    assert soak.batches(0, 250) == [(0, 100), (100, 100), (200, 50)]
    assert soak.batches(0, 250, [batch(100), batch(0, 20)]) == [(0, 100), (200, 50)]
    assert soak.batches(100, 100, [batch(100)]) == []


def test_a_seed_that_goes_wrong_is_told_and_the_others_are_played(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrongly(seed: int) -> Story:
        if seed == 1:
            raise ZeroDivisionError("in the story")
        story = told(seed)
        if seed == 2:
            story.heard[0].ids.append(-1)
        return story

    monkeypatch.setattr(soak, "told", wrongly)
    result = soak.played(0, 4)
    assert result.wrong.keys() == {"1", "2"}
    assert result.wrong["1"] == "ZeroDivisionError: in the story"
    assert "seed 2" in result.wrong["2"]
    assert result.answers.asked


@pytest.mark.long
def test_processes_play_and_the_book_has_what_they_found(tmp_path: Path) -> None:
    book = tmp_path / "book.jsonl"
    [result] = soak.soaked([(0, 2)], 1, book)
    assert soak.written(book) == [result]
    assert (result.first, result.n, result.wrong) == (0, 2, {})
    assert result.commit


@pytest.mark.parametrize(
    ("answers", "name"),
    [
        (Tally(100, 96, 1, 40, 38), ""),
        (Tally(100, 84, 16, 40, 38), "of those who asked 84 were answered"),
        (Tally(100, 90, 1, 40, 38), "of those not lost too often 90"),
        (Tally(100, 96, 1, 40, 30), "of those who asked later 30"),
    ],
)
def test_enough_answers_must_be_finished(answers: Tally, name: str) -> None:
    assert answers.why.startswith(name)
    assert bool(answers.why) == bool(name)
    assert (answers + answers).asked == 200


def test_the_page_has_the_seeds_that_found_something_and_what_was_played() -> None:
    text = page.section([batch(0), batch(100, wrong={"177": "bad"})])
    assert "| 200, of 0 to 199 | 177 | 200 | 196 | 2 | 80 | 80 | 0.05 |" in text
    assert "Commit abc." in text
    for result in page.FOUND:
        assert f"| {result.seed} | {result.what} | {result.commit} |" in text
        assert (ROOT / result.test).exists()
    assert "Went wrong" not in page.section([])
