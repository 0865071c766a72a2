"""Tests of parsing the command line, counters and stacks, and of writing quotas."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.options import FULL, PARTS, SHORT, SIDES, parse
from bench.parts.time_profile import hot_spots
from bench.pool_side import default_splits
from bench.quota import V1, V2, quota_files
from bench.rounds import Questions
from bench.shaped_link import busy_rate


def test_no_part_means_the_comparison_in_its_short_form() -> None:
    options = parse([])
    assert options.parts == SIDES
    assert {name: getattr(options, name) for name in SHORT} == SHORT


def test_what_is_set_holds_in_the_short_form_too() -> None:
    options = parse(["--runs", "7", "--streams", "0"])
    assert (options.runs, options.streams, options.output) == (7, 0, SHORT["output"])


def test_all_parts_have_their_full_sizes() -> None:
    options = parse(["all"])
    assert options.parts == PARTS
    assert {name: getattr(options, name) for name in FULL} == FULL
    assert (options.many_prompt, options.many_output) == (options.prompt, options.output)


def test_parts_keep_their_order() -> None:
    options = parse(["pool", "whole", "--split", "4,8,4", "--split", "7,8,1", "--cores", "1,0"])
    assert options.sides == ("whole", "pool")
    assert options.splits == ((4, 8, 4), (7, 8, 1))
    assert options.cores == (1, 0)


@pytest.mark.parametrize("words", [["wall"], ["--split", "a,b"], ["--split", "1,-2"]])
def test_nonsense_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(words)
    assert "error" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("n_layers", "n_lenders", "splits"),
    [(16, 1, [(7, 8, 1), (4, 8, 4)]), (16, 2, [(5, 5, 5, 1), (3, 5, 5, 3)]), (2, 0, [(1, 1)])],
)
def test_default_splits(n_layers: int, n_lenders: int, splits: list[tuple[int, ...]]) -> None:
    results = default_splits(n_layers, n_lenders)
    assert results == splits
    assert {sum(split) for split in results} == {n_layers}


def test_prompts_are_the_same_for_a_label_only() -> None:
    questions = Questions(seed=1, n_vocab=1000)
    group, two = questions.prompts("a", 2, 50)
    assert questions.prompts("a", 2, 50) == [group, two]
    assert group != two != questions.prompts("b", 1, 50)[0]
    assert all(300 <= token < 1000 for token in group + two)


def test_rate_is_taken_where_bytes_move() -> None:
    points = [(0.0, 0), (9.0, 10), (10.0, 100), (11.0, 200), (12.0, 299), (20.0, 300)]
    assert busy_rate(points) == pytest.approx(199 / 2)


@pytest.mark.parametrize("points", [[], [(0.0, 5)], [(0.0, 5), (1.0, 5)]])
def test_nothing_moved(points: list[tuple[float, int]]) -> None:
    assert busy_rate(points) is None


def test_hot_spots_fold_lines_of_one_function() -> None:
    folded = "a (x.py:1);b (y.py:2) 3\na (x.py:1);b (y.py:9) 1\na (x.py:1) 4\nnonsense\n"
    folded += "a (x.py:1);EpollSelector.select (selectors.py:5) 90\n"  # waiting is no work
    assert hot_spots(folded) == [("b (y.py)", 0.5), ("a (x.py)", 0.5)]
    assert hot_spots("") == []


def test_quota_of_both_kinds() -> None:
    assert quota_files(V1 / "g", 0.5) == {"cpu.cfs_period_us": "10000", "cpu.cfs_quota_us": "5000"}
    assert quota_files(Path(V2 / "g"), 2 / 3) == {"cpu.max": "6667 10000"}
