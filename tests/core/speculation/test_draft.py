"""The text that a draft model has written, beside that of the large model."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.core.speculation.acceptance import N_GRADES
from app.core.speculation.draft import FIRST_ACCEPTANCE, FIRST_CHANCES, GRADES, DraftText, DraftToken


def text(*tokens: int) -> DraftText:
    return DraftText([DraftToken(token, 0.6) for token in tokens])


def test_what_is_right_is_used_up_and_the_rest_stays() -> None:
    draft = text(1, 2, 3, 4)
    draft.follow([1, 2])
    assert [token.token for token in draft.written] == [3, 4]
    assert draft.n_turns == 0
    assert draft.acceptance > FIRST_ACCEPTANCE


def test_after_a_wrong_token_nothing_is_left() -> None:
    draft = text(1, 2, 3, 4)
    draft.follow([1, 9, 3])
    assert draft.written == []
    assert draft.n_turns == 1


def test_it_goes_on_only_after_its_own_guesses() -> None:
    draft = text(1, 2, 3)
    assert [token.token for token in draft.after([1])] == [2, 3]
    assert draft.after([2]) == []
    assert draft.after([1, 2, 3, 4]) == []


@given(st.lists(st.booleans(), min_size=1, max_size=80))
def test_the_usual_acceptance_is_a_probability_and_returns_if_nothing_is_written(came: list[bool]) -> None:
    draft = DraftText()
    for right in came:
        draft.written = [DraftToken(1, 0.5)]
        draft.follow([1 if right else 2])
        assert 0 <= draft.acceptance <= 1
    assert all(before >= after for before, after in pairwise(draft.usual_chances(8)))
    apart = abs(draft.acceptance - FIRST_ACCEPTANCE)
    draft.written = []
    draft.follow([5] * 300)
    assert abs(draft.acceptance - FIRST_ACCEPTANCE) <= 0.6 * apart + 1e-9


def test_grades_have_a_first_chance_each_that_grows() -> None:
    assert len(FIRST_CHANCES) == len(GRADES) + 1 == N_GRADES
    assert list(FIRST_CHANCES) == sorted(FIRST_CHANCES)
    assert [DraftToken(0, chance).grade for chance in (0.1, 0.4, 0.6, 0.8, 0.9, 0.99)] == list(range(N_GRADES))
