"""The Guide: its text keeps the scored wordings out, its key is strict, and the shipped model meets the bar."""

import json
import random
import re
from itertools import islice

import pytest

from guide import score
from guide.dataset import (
    FOREIGN_SLOTS,
    HERE,
    UNKNOWN,
    Writer,
    checks,
    expand,
    held_out,
    load_fresh,
    load_topics,
    load_words,
    plain,
)

LATER = ("pictures", "tools", "chat-settings")  # topics written after the strangers' questions
SAMPLE = 20_000  # generated conversations that are looked through
DRAWS = 20  # wordings drawn of each written pattern
NEAR = 0.8  # share of words in common from which two wordings count as nearly the same


def written(seed: int) -> list[str]:
    """Wordings of every pattern of the training text."""
    words, rng = load_words(), random.Random(seed)
    topics = load_topics()
    writer = Writer(topics, words, seed)
    framed = [writer.framed(topic) for topic in topics for _ in range(10 * DRAWS)]
    return framed + [
        expand(pattern, words.slots, rng) for topic in topics for pattern in topic.questions for _ in range(DRAWS)
    ]


def bag(text: str) -> frozenset[str]:
    """The words of a wording, whatever their order."""
    return frozenset(re.findall(r"[a-z0-9]+", text.lower().replace("'", "")))


def test_scored_wordings_are_distinct_and_complete() -> None:
    key = score.load_key()
    assert len(key) == 30
    wordings = [plain(text) for mark in key for text in (mark.question, *mark.rewordings)]
    assert len(wordings) == len(set(wordings)) == 90


def test_every_topic_of_the_key_has_a_passing_written_answer() -> None:
    answers = score.canonical()
    assert [mark.topic for mark in score.load_key() if not mark.passes(answers[mark.topic])] == []


def test_the_key_refuses_the_answers_of_other_topics() -> None:
    assert score.leaks(score.load_key(), score.canonical()) == []


@pytest.mark.parametrize("answer", ["", "I do not know.", "Yes.", "No."])
def test_the_key_refuses_empty_answers(answer: str) -> None:
    assert not any(mark.passes(answer) for mark in score.load_key())


def test_held_out_wordings_are_not_written_in_the_training_text() -> None:
    banned = {plain(text) for text in held_out()}
    assert banned & {plain(text) for text in written(1)} == set()
    assert banned & {plain(turn.question) for _, turn in checks(load_topics())} == set()


@pytest.mark.long
def test_held_out_wordings_are_not_nearly_written_either() -> None:
    bags = {bag(text) for text in written(2)}
    for text in held_out():
        requests = bag(text)
        nearest = max(len(requests & other) / len(requests | other) for other in bags)
        assert nearest < NEAR, text


@pytest.mark.long
def test_held_out_and_validation_wordings_are_never_generated() -> None:
    banned = [plain(text) for text in held_out()]
    validation = {plain(turn.question) for _, turn in checks(load_topics())}
    for talk in islice(Writer(load_topics(), load_words(), 7), SAMPLE):
        for turn in talk.turns:
            said = plain(turn.question)
            assert said not in validation, turn.question
            assert not any(wording in said for wording in banned), turn.question


def test_the_same_seed_writes_the_same_text() -> None:
    first, second = (list(islice(Writer(load_topics(), load_words(), 3), 200)) for _ in range(2))
    assert first == second


def test_a_foreign_question_keeps_the_words_that_hold_it_together_and_no_others() -> None:
    words = load_words()
    writer = Writer(load_topics(), words, 5)
    strange = {part for name in FOREIGN_SLOTS for text in words.slots[name] for part in text.split()}
    for _ in range(200):
        parts = writer.foreign().split()
        kept = [part for part in parts if part.lower().strip("?!.,") in writer.common]
        assert len(kept) < len(parts), "at least one word is foreign"
        assert all(part in strange for part in parts if part not in kept)
    questions = [writer.foreign() for _ in range(200)]
    assert sum(any(part.lower() in words.frame for part in text.split()) for text in questions) > 100


def test_answers_are_short_and_plain() -> None:
    for topic in load_topics():
        assert len(topic.answer) <= 240, topic.name
        assert topic.answer.isascii(), topic.name
        assert topic.answer[-1] in ".?", topic.name


def test_prompts_for_the_split_comparison_are_two_hundred() -> None:
    prompts = [json.loads(line) for line in (HERE / "prompts.txt").read_text("utf-8").splitlines()]
    assert len(prompts) == len(set(prompts)) == 200
    assert {text for mark in score.load_key() for text in (mark.question, *mark.rewordings)} <= set(prompts)


def test_the_fresh_questions_are_a_hundred() -> None:
    fresh = load_fresh()
    assert len(fresh) == len({plain(text) for text in fresh}) == 100
    assert {plain(text) for text in fresh}.isdisjoint(plain(text) for text in score.load_strangers().unknown)


def test_the_questions_of_strangers_cover_every_topic_once() -> None:
    strangers = score.load_strangers()
    assert len(strangers.unknown) == len(set(strangers.unknown)) == 60
    no_question = (*UNKNOWN, *LATER, "english-only", "hello", "joke")
    names = [topic.name for topic in load_topics() if topic.name not in no_question]
    assert sorted(topic for topic, _ in strangers.known) == sorted(names)


def test_all_answers_to_unknown_questions_begin_as_a_refusal_does() -> None:
    begins = {topic.name for topic in load_topics() if topic.answer.startswith(score.REFUSAL)}
    assert begins == set(UNKNOWN)


def test_the_shipped_guide_meets_the_bar() -> None:
    ask = score.open_guide(score.MODEL)
    results = score.score(score.load_key(), ask)
    sums = score.totals(results)
    missed = [(result.question, result.answer) for result in results if not result.passed]
    assert sums["met"], missed
    refused = score.refusals(score.load_strangers(), results, ask)
    assert refused.met, (refused.answered_unknown, refused.refused_known)
