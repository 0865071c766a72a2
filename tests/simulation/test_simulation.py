"""Seeded faults on a clock of their own: an answer is an undisturbed one's, or its beginning and a clear error."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import cache

import pytest

from tests.simulation.judge import check, tally
from tests.simulation.world import Story, told

SEEDS = int(os.environ.get("POOLHOUSE_SEEDS", "500"))
FIRST = int(os.environ.get("POOLHOUSE_FIRST_SEED", "0"))
BATCH = 50
RENEWED = (4, 5)  # seeds that have much of it
EARLY = 40  # seeds whose stories several tests look at


@pytest.fixture(autouse=True)
def seldom_tidied() -> Iterator[None]:
    """A story leaves little garbage: to look for it all the time takes a fifth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)
    yield
    gc.set_threshold(*before)


@cache
def early(seed: int) -> Story:
    return told(seed)


@pytest.mark.many(keep=1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(FIRST, FIRST + SEEDS, BATCH))
def test_no_token_is_lost_doubled_or_changed(first: int) -> None:
    seeds = range(first, min(first + BATCH, FIRST + SEEDS))
    stories = [early(seed) if seed < EARLY else told(seed) for seed in seeds]
    for story in stories:
        check(story)
    why = tally(stories).why
    assert not why, "\n".join([why, *map(str, stories)])


def test_a_worker_that_dies_while_its_replica_is_opened_is_no_end_of_the_story() -> None:
    """Seed 574: it is opened once more."""
    check(told(574))


def test_a_seed_tells_the_same_story_every_time() -> None:
    for seed in (3, 17, 39):
        assert str(early(seed)) == str(told(seed))


@pytest.mark.long
def test_undisturbed_the_pool_says_what_one_stage_says() -> None:
    quiet = [story for story in map(early, range(EARLY)) if not story.deeds]
    assert quiet
    for story in quiet:
        check(story)
        assert all(item.finish or item.gives_up_at for item in story.heard)
        assert not any(item.notices for item in story.heard)


def test_what_is_not_lost_serves_on_in_a_new_epoch_and_applies_nothing_of_the_old_one() -> None:
    """I2: frames that were sent before may still arrive. `make soak` has the layers loaded anew."""
    stories = [told(seed, ["kill", "kill_at_any_turn"], renews=True) for seed in RENEWED]
    assert sum(story.n_renewed for story in stories) >= len(RENEWED) / 2
    for story in stories:
        check(story)


@pytest.mark.long
@pytest.mark.parametrize("deed", ["jump", "heat"])
def test_what_is_no_fault_has_no_effect(deed: str) -> None:
    """F8: a clock that somebody sets, by a day or ten years; and a processor that is hot for a while."""
    stories = [told(seed, only=[deed]) for seed in range(20)]
    assert sum(len(story.deeds) for story in stories) >= 20
    assert sum(map(_amid_an_answer, stories)) >= 10
    for story in stories:
        check(story)
        for item in story.heard:
            assert item.finish or item.gives_up_at, str(story)
            assert not item.notices, str(story)
            assert not (item.finish and item.finish.figures.recoveries), str(story)


def _amid_an_answer(story: Story) -> bool:
    """Return whether something was done between the first token of an answer and its last."""
    deeds = [float(deed.rpartition(" ")[2]) for deed in story.deeds]
    spans = [(item.times[0], item.times[-1]) for item in story.heard if item.times]
    return any(first < at < last for at in deeds for first, last in spans)
