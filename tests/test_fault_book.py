"""The book of fault runs: what it keeps of each, how runs of several calls add up, and what makes one again."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.faults import __main__ as matrix
from tests.faults import report
from tests.faults.book import Book, kind_of_machine, read, written
from tests.faults.outcome import WRITTEN, Kind, Outcome

ROOT = Path(__file__).parents[1]
KIND: Kind = ("F3", "silent for 2 s, 1st lender", "middle")
OTHER: Kind = ("F3", "silent for 5 s, 1st lender", "middle")


@pytest.fixture(autouse=True)
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(matrix, "TABLE", tmp_path / "page.md")
    return tmp_path / "page.md"


def test_what_the_repository_keeps_is_what_runs_write_themselves() -> None:
    kept = {matrix.TABLE.name, matrix.BOOK.relative_to(ROOT).as_posix()}
    assert kept <= {*WRITTEN, "page.md"}
    for line in matrix.BOOK.read_text("utf-8").splitlines():
        assert read(line).made_on
        assert read(line).commit


def test_a_line_is_short_and_says_all() -> None:
    plain = Outcome(*KIND, True, next_token_s=2.3456789, commit="abc", made_on="Linux", seed=7)
    line = written(plain)
    assert json.loads(line) == {
        "row": "F3", "name": KIND[1], "phase": "middle", "next_token_s": 2.346, "commit": "abc",
        "made_on": "Linux", "seed": 7,
    }  # fmt: skip
    failed = Outcome(*KIND, False, "no end", facts={"n": 10_000.0}, struck=False, in_time=False)
    assert read(written(failed)) == failed


def test_runs_add_up_and_only_resume_leaves_out_what_is_there(tmp_path: Path) -> None:
    file, rows = tmp_path / "book.jsonl", Counter({KIND: 2})
    first = Book(file, goes_on=False)
    first.add(Outcome(*KIND, True))
    first.add(Outcome(*OTHER, False, "no end"))
    again, more = Book(file, goes_on=False), Book(file, goes_on=True)
    assert again.missing(rows) == {KIND: 2}
    assert more.missing(rows) == {KIND: 1}
    again.add(Outcome(*KIND, True))
    assert again.missing(rows) == {KIND: 1}
    assert len(Book(file, goes_on=True).outcomes) == 3
    assert [outcome.kind for outcome in again.made] == [KIND]  # an old failure is not this call's
    assert {outcome.made_on for outcome in again.outcomes} == {kind_of_machine()}


async def test_each_run_has_a_seed_that_makes_it_again(tmp_path: Path) -> None:
    drawn: list[float] = []

    async def run(kind: Kind) -> Outcome:
        drawn.append(random.random())
        return Outcome(*kind, True)

    async def made(seed: int, n: int) -> list[int]:
        book = Book(tmp_path / f"{seed}.jsonl", goes_on=False)
        await matrix.Matrix(book, 300, math.inf, seed=seed).each(Counter({KIND: n}), run)
        return [outcome.seed for outcome in book.outcomes]

    first, *rest = await made(5, 3)
    assert first == 5
    assert len({first, *rest}) == 3
    assert await made(rest[-1], 1) == rest[-1:]
    assert drawn[-1] == drawn[2]


def test_a_run_can_be_asked_for_by_name(tmp_path: Path) -> None:
    book = Book(tmp_path / "book.jsonl", goes_on=False)
    item = matrix.Matrix(book, 300, math.inf, ("F3",), ("for 2 s, 1st",))
    assert item._left(Counter({KIND: 2, OTHER: 2})) == {KIND: 2}


def test_the_page_says_where_and_of_what_its_runs_were_made(tmp_path: Path, page: Path) -> None:
    outcomes = [
        Outcome(*KIND, True, commit="abc", made_on="Linux a"),
        Outcome(*KIND, True, commit="abc", made_on="Linux b"),
        Outcome(*KIND, True, commit="def", made_on="Linux b"),
    ]
    text = report.written(outcomes, 96, {KIND}, "")
    assert "\nCommits, and the runs of each: abc (2), def (1).\n" in text
    assert "2 of them on Linux b. 1 of them on Linux a. " in text
    matrix.Matrix(Book(tmp_path / "book.jsonl", goes_on=True), 300, math.inf).write()
    assert page.read_text("utf-8").startswith("# Faults and attacks\n\n`make faults` writes this page: 0 runs")
