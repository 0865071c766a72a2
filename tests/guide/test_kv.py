"""Tests of the effect of a q8_0 context on the Guide's answers."""

from __future__ import annotations

import pytest

from backends.contract import KV_ANSWERS, KV_SAME_ANSWERS
from guide.kv import ask, questions, same_tokens, totals
from guide.score import MODEL


def test_there_are_as_many_questions_as_is_said() -> None:
    requests = questions()
    assert len(requests) == len(set(requests)) == KV_ANSWERS >= KV_SAME_ANSWERS


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [([1, 2, 3], [1, 2, 3], 3), ([1, 2], [1, 2, 3], 2), ([1, 2, 3], [1, 9, 3], 1), ([], [1], 0)],
)
def test_answers_part_somewhere(first: list[int], second: list[int], same: int) -> None:
    assert same_tokens(first, second) == same


def test_whole_answers_and_tokens_are_counted() -> None:
    result = totals([[1, 2, 3], [4, 5]], [[1, 2, 3], [4, 6]])
    assert result == {"answers": 2, "same": 1, "tokens": 5, "tokens_before_parting": 4}


def test_the_guide_answers_with_both() -> None:
    requests = questions()[:2]
    exact, near = (ask(MODEL, requests, 1, kind) for kind in ("F16", "Q8_0"))
    assert all(len(answer) > 5 for answer in exact)
    assert totals(exact, near)["tokens_before_parting"] > 5
