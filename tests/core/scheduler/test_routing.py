"""Tests of the choice of a replica for a request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.scheduler.routing import (
    COLD_STEPS,
    UNKNOWN_PACE,
    Pace,
    ReplicaState,
    pace_of,
    route,
    updated_pace,
    wait_s,
)

PACE = Pace(row_s=0.01, step_s=0.05, crowd=0.2)
IDLE = ReplicaState(PACE, True, 0, 0, 4, 0)


def test_equal_replicas_share_equal_requests() -> None:
    standings = [IDLE, IDLE, IDLE]
    for _ in range(9):
        place = route(standings, 100, 50)
        assert place is not None
        replica_state = standings[place]
        standings[place] = replace(
            replica_state, running=replica_state.running + 1, rows_ahead=replica_state.rows_ahead + 100
        )
    assert [standing.running for standing in standings] == [3, 3, 3]


def test_a_machine_twice_as_fast_gets_twice_as_much() -> None:
    fast = replace(IDLE, pace=Pace(0.005, 0.025, 0.2), slots=64)
    standings = [replace(IDLE, slots=64), fast]
    for _ in range(12):
        place = route(standings, 100, 50)
        assert place is not None
        replica_state = standings[place]
        standings[place] = replace(
            replica_state, running=replica_state.running + 1, rows_ahead=replica_state.rows_ahead + 100
        )
    assert standings[1].running in (8, 9)


@pytest.mark.parametrize(
    ("held", "running", "place"),
    [
        (0, 0, 1),  # nothing is held anywhere: the quicker one
        (1000, 0, 0),  # a chat returns to where it was
        (1000, 1, 0),  # also while another answer is made there
        (20, 3, 1),  # but not for a few tokens
    ],
)
def test_a_chat_returns_unless_the_wait_costs_more(held: int, running: int, place: int) -> None:
    there = replace(IDLE, held=held, running=running)
    elsewhere = replace(IDLE, pace=replace(PACE, row_s=0.0099))
    assert route([there, elsewhere], 1010, 100) == place


def test_a_full_replica_with_the_chat_is_left_for_a_free_one() -> None:
    full = replace(IDLE, held=900, running=4, waiting=2, usual_s=30.0)
    assert route([full, IDLE], 1000, 100) == 1


def test_who_does_not_serve_gets_nothing() -> None:
    gone = replace(IDLE, is_open=False)
    busy = replace(IDLE, running=4, waiting=60)
    assert route([gone, busy, gone], 10, 10) == 1
    assert route([gone, gone], 10, 10) is None
    assert route([], 10, 10) is None


def test_unknown_paces_are_alike() -> None:
    unknown = replace(IDLE, pace=None)
    assert route([replace(unknown, running=1), unknown], 100, 10) == 1
    assert wait_s(unknown, 100, 10) == wait_s(replace(IDLE, pace=UNKNOWN_PACE), 100, 10)


def test_an_answer_counts_as_long_as_it_may_get() -> None:
    assert wait_s(IDLE, 100, 10) < wait_s(IDLE, 100, 100) < wait_s(IDLE, 100, 10_000)
    assert wait_s(IDLE, 100, 10_000) == wait_s(IDLE, 100, 1_000_000)


def test_a_pace_is_learned_from_what_steps_took() -> None:
    assert updated_pace(None, 0.001, 4, prefill=True) is None  # too few rows to tell
    pace = updated_pace(None, 0.64, 64, prefill=True)
    assert pace is not None
    assert pace.row_s == pytest.approx(0.01)
    assert pace.step_s == pytest.approx(0.1)  # in proportion, for now
    for _ in range(400):
        for rows in (1, 8, 3):
            pace = updated_pace(pace, 0.2 * (1 + 0.6 * (rows - 1)), rows, prefill=False)
        pace = updated_pace(pace, 0.128, 64, prefill=True)
    assert pace is not None
    assert pace.row_s == pytest.approx(0.002, rel=0.01)
    assert pace.round_s(1) == pytest.approx(0.2, rel=0.02)
    assert pace.round_s(8) == pytest.approx(0.2 * 5.2, rel=0.02)


def test_of_cold_steps_the_quickest_counts() -> None:
    pace = None
    for busy_s in (2.0, 0.5, 0.1, 0.3, 0.1, 0.4):
        pace = updated_pace(pace, busy_s, 1, prefill=False)
    assert pace is not None
    assert pace.step_s == pytest.approx(0.1)


def test_a_step_that_was_read_with_the_one_before_is_not_the_quickest() -> None:
    """Such a step waited for the one before, and appears to have taken no time itself."""
    pace = None
    for busy_s, waited_s in ((0.1, 0.0), (0.00001, 0.19), (0.1, 0.0), (0.00001, 0.2)):
        pace = updated_pace(pace, busy_s, 1, prefill=False, wait_s=waited_s)
    assert pace is not None
    assert pace.step_s == pytest.approx(0.1)
    for _ in range(COLD_STEPS):
        pace = updated_pace(pace, 0.1, 1, prefill=False, wait_s=5.0)
    assert pace is not None
    assert pace.step_s == pytest.approx(0.1)  # later, what it waited is none of its pace


def test_a_hiccup_is_not_believed_whole() -> None:
    after = updated_pace(PACE, 1000.0, 1, prefill=False)
    assert after is not None
    assert after.step_s < 1.2 * PACE.step_s


def test_a_pipeline_is_as_fast_as_its_stages_together() -> None:
    assert pace_of([PACE]) == PACE
    both = pace_of([PACE, Pace(0.02, 0.01, 0.2)])
    assert both is not None
    assert both.row_s == 0.02
    assert both.step_s == pytest.approx(0.06)
    assert pace_of([PACE, None]) is None
    assert pace_of([]) is None


def test_a_step_too_short_for_the_clock_teaches_nothing() -> None:
    assert updated_pace(None, 0.0, 1, prefill=False) is None
    known = updated_pace(None, 0.05, 1, prefill=False)
    assert updated_pace(known, 0.0, 1, prefill=False) == known
