"""The place in the queue, and about how long it takes."""

from __future__ import annotations

import pytest

from app.core.scheduler.schedule import QueuedRequest, UsualDuration, queued_requests


def known(seconds: float) -> UsualDuration:
    usual = UsualDuration()
    usual.record(seconds)
    return usual


def test_before_an_answer_has_ended_only_the_place_is_known() -> None:
    assert queued_requests(["a", None], [3.0], UsualDuration(), 1) == (
        QueuedRequest("a", 1, None),
        QueuedRequest(None, 2, None),
    )


@pytest.mark.parametrize(
    ("elapsed_s", "slots", "expected"),
    [
        ([4.0], 1, [6.0, 16.0, 26.0]),  # one after the other
        ([4.0, 9.0], 2, [1.0, 6.0, 11.0]),  # two at a time
        ([13.0], 1, [3.0, 13.0, 23.0]),  # it is late, and may be as late again
        ([4.0], 2, [0.0, 6.0, 10.0]),  # a slot is free: it is next at once
        ([], 1, [0.0, 10.0, 20.0]),
    ],
)
def test_a_slot_is_free_when_its_answer_took_as_long_as_usual(
    elapsed_s: list[float], slots: int, expected: list[float]
) -> None:
    results = queued_requests(["a", "b", "c"], elapsed_s, known(10.0), slots)
    assert [queued_request.place for queued_request in results] == [1, 2, 3]
    assert [queued_request.seconds for queued_request in results] == pytest.approx(expected)


def test_what_is_usual_follows_the_newest_and_begins_with_the_first() -> None:
    usual = UsualDuration()
    assert (usual.seconds, usual.wait(3, 1)) == (1.0, 3)
    usual.record(30.0)
    assert usual.seconds == 30.0
    usual.record(20.0)
    assert usual.seconds == pytest.approx(28.0)
    assert (usual.wait(3, 2), usual.wait(0, 2)) == (42, 1)
