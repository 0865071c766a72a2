"""Tests of speculative tokens, of how a score follows the outcomes, and of when a guess pays."""

from __future__ import annotations

import random
from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.speculation.acceptance import Score
from app.core.speculation.lookup import FIRST_CHANCES, GRADES, MOST_ALIKE, READ_AT_ONCE, Lookup, TokenMatch
from app.core.speculation.overlap import LEAST_PLAIN, SpeculationGain, TokenOrigin

TEXTS = st.lists(st.integers(0, 5), min_size=1, max_size=80)
GOOD = TokenMatch(7, MOST_ALIKE)
WAYS = st.tuples(st.sampled_from(TokenOrigin), st.floats(1e-5, 10.0))


def looked_up(text: list[int]) -> Lookup:
    lookup = Lookup()
    lookup.read(array("i", text))
    return lookup


@given(TEXTS, st.lists(st.integers(0, 5), max_size=4))
def test_what_is_found_followed_the_same_tokens_before(text: list[int], pending: list[int]) -> None:
    token_match = looked_up(text).find(array("i", text), pending)
    said = [*text, *pending]
    pairs = list(pairwise(text))
    if token_match is None:
        assert len(said) < 2 or tuple(said[-2:]) not in pairs[:-1]
        return
    alike = said[-token_match.n_alike :]
    assert 2 <= token_match.n_alike <= MOST_ALIKE
    places = range(token_match.n_alike, len(text))
    assert any(text[at] == token_match.token and text[at - token_match.n_alike : at] == alike for at in places)


@given(TEXTS)
def test_a_text_read_bit_by_bit_is_the_same_as_read_at_once(text: list[int]) -> None:
    bit_by_bit = Lookup()
    for n in range(len(text) + 1):
        bit_by_bit.read(array("i", text[:n]))
    known = array("i", text)
    assert bit_by_bit.find(known) == looked_up(text).find(known)


def test_the_later_of_two_places_counts_and_the_longer_run_before_the_shorter() -> None:
    assert looked_up([1, 2, 3, 9, 1, 2, 4, 9, 1, 2]).find(array("i", [1, 2, 3, 9, 1, 2, 4, 9, 1, 2])) == TokenMatch(
        4, 3
    )
    text = [5, 6, 1, 2, 3, 0, 1, 2, 4, 0, 5, 6, 1, 2]
    assert looked_up(text).find(array("i", text)) == TokenMatch(3, 4)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=3), st.integers(8, 30))
def test_a_loop_is_guessed_for_ever(loop: list[int], n: int) -> None:
    text = array("i", (loop * 50)[: n + 12])
    lookup = Lookup()
    lookup.read(text)
    pending: list[int] = []
    for ahead in range(8):
        token_match = lookup.find(text, pending)
        assert token_match is not None
        assert token_match.token == (loop * 50)[len(text) + ahead]
        pending.append(token_match.token)


def test_a_long_prompt_is_read_in_parts() -> None:
    text = array("i", [*range(1000), 0, 1])
    lookup = Lookup()
    lookup.read(text)
    assert lookup.find(text) == TokenMatch(2, 2)
    far = array("i", [*text, 900, 901])
    assert READ_AT_ONCE < 900
    assert lookup.find(far) is None
    lookup.read(far)
    assert lookup.find(far) == TokenMatch(902, 2)


def test_grades_have_a_first_chance_each_that_grows() -> None:
    grades = [TokenMatch(0, n).grade for n in range(2, MOST_ALIKE + 1)]
    assert grades == sorted(grades)
    assert set(grades) == set(range(len(FIRST_CHANCES)))
    assert len(FIRST_CHANCES) == len(GRADES) + 1
    assert list(FIRST_CHANCES) == sorted(FIRST_CHANCES)


@given(st.lists(st.booleans(), max_size=60), st.integers(2, MOST_ALIKE))
def test_a_score_is_a_chance_and_follows_what_comes(came: list[bool], n_alike: int) -> None:
    token_match = TokenMatch(7, n_alike)
    score = Score(FIRST_CHANCES)
    for right in came:
        before = score.chance(token_match)
        score = score.after(token_match, 7 if right else 8)
        assert 0 < score.chance(token_match) < 1
        assert (score.chance(token_match) >= before) if right else (score.chance(token_match) <= before)
    other = TokenMatch(7, 2 if token_match.grade else MOST_ALIKE)
    assert score.chance(other) == Score(FIRST_CHANCES).chance(other)


def test_a_score_forgets() -> None:
    score = Score(FIRST_CHANCES)
    for right in [True] * 100 + [False] * 25:
        score = score.after(GOOD, 7 if right else 8)
    assert score.chance(GOOD) < 0.45


@given(st.lists(WAYS, max_size=80), st.floats(0, 1), st.floats(0, 1))
def test_a_better_chance_pays_if_a_worse_one_does(
    measured: list[tuple[TokenOrigin, float]], first: float, second: float
) -> None:
    gain = SpeculationGain()
    for way, seconds in measured:
        gain = gain.after(way, seconds)
    assert gain.pays(max(first, second)) or not gain.pays(min(first, second)) or lost(gain)
    assert not gain.pays(0.0)


def lost(gain: SpeculationGain) -> bool:
    """Even a right guess costs more than a wrong one: then fewer are made, whatever their chance."""
    return gain.shares[TokenOrigin.RIGHT] > max(1.0, gain.shares[TokenOrigin.WRONG])


def measured(plain_s: float, right: float, wrong: float, opened: float = 1.0) -> SpeculationGain:
    gain = SpeculationGain()
    for _ in range(LEAST_PLAIN + 5):
        gain = gain.after(TokenOrigin.PLAIN, plain_s)
    for way, share in ((TokenOrigin.RIGHT, right), (TokenOrigin.WRONG, wrong), (TokenOrigin.OPENED, opened)):
        for _ in range(60):
            gain = gain.after(way, share * plain_s)
    return gain


@pytest.mark.parametrize(
    ("right", "wrong", "opened", "least"),
    [
        (0.5, 1.0, 1.0, 0.1),  # two equal machines: a miss costs nothing but power
        (0.5, 1.5, 1.0, 0.51),
        (0.9, 1.1, 1.0, 0.55),
        (0.9, 1.1, 1.05, 0.8),
        (0.95, 1.5, 1.0, 0.93),
    ],
)
def test_a_guess_pays_from_some_chance_on(right: float, wrong: float, opened: float, least: float) -> None:
    gain = measured(0.03, right, wrong, opened)
    assert gain.pays(least + 0.01)
    assert not gain.pays(least - 0.01)


def test_what_a_guess_takes_in_the_first_run_is_measured() -> None:
    assert SpeculationGain().after_first_run(0.01).first_s == 0.01
    gain = SpeculationGain().after_first_run(0.01).after_first_run(5.0)
    assert 0.01 < gain.first_s < 0.013
    assert gain.after(TokenOrigin.PLAIN, 0.03).first_s == gain.first_s


def test_nothing_pays_where_guesses_only_cost_nor_before_anything_is_measured() -> None:
    assert not measured(0.03, 1.05, 1.3).pays(1.0)
    assert not SpeculationGain().after(TokenOrigin.RIGHT, 0.001).pays(1.0)
    few = SpeculationGain()
    for _ in range(LEAST_PLAIN - 1):
        few = few.after(TokenOrigin.PLAIN, 0.03)
    assert not few.pays(1.0)
    assert few.after(TokenOrigin.PLAIN, 0.03).pays(1.0)


def test_one_long_token_changes_little_and_old_measurements_fade() -> None:
    calm = measured(0.03, 0.5, 1.0)
    assert calm.after(TokenOrigin.PLAIN, 9.0).plain_s < 1.25 * calm.plain_s
    assert calm.after(TokenOrigin.RIGHT, 9.0).pays(0.5)
    bad = measured(0.03, 1.2, 1.6)
    assert not bad.pays(1.0)
    for _ in range(400):
        bad = bad.after(TokenOrigin.PLAIN, 0.03)
    assert bad.pays(1.0)


def test_a_text_that_never_repeats_is_hardly_ever_guessed() -> None:
    """Random tokens of a small vocabulary, so that pairs do come again: a guess would be wrong."""
    chance = random.Random(5)
    gain, lookup, score = measured(0.03, 0.55, 1.1), Lookup(), Score(FIRST_CHANCES)
    text, guessed = array("i"), 0
    for _ in range(600):
        token_match = lookup.find(text)
        token = chance.randrange(40)
        if token_match is not None:
            guessed += gain.pays(score.chance(token_match))
            score = score.after(token_match, token)
        text.append(token)
        lookup.read(text)
    assert guessed < 0.02 * 600
