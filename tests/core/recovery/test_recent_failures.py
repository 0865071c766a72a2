"""Tests of the quarantine: a machine that fails repeatedly gets no layers for some minutes."""

from __future__ import annotations

import pytest

from app.core.errors import Reason
from app.core.recovery.recovery import MOST_MACHINES, REMEMBERED_S, Loss, RecentFailures

DIED = Reason("worker_died")


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_the_second_failure_leaves_a_machine_out_for_some_minutes() -> None:
    clock = Clock()
    failures = RecentFailures(clock)
    failures.note(Loss("attic", "attic-pc", DIED, 0.0))
    assert failures.left_out() == frozenset()
    clock.now_s += 60
    failures.note(Loss("attic", "attic-pc", DIED, 0.0))
    failures.note(Loss("study", "study-pc", DIED, 0.0))
    assert failures.left_out() == {"attic"}
    failures.note(Loss("study", "study-pc", DIED, 0.0))
    failures.forget()
    assert failures.left_out() == frozenset()
    for _ in range(2):
        failures.note(Loss("attic", "attic-pc", DIED, 0.0))
        clock.now_s += 60
    clock.now_s += REMEMBERED_S - 120
    assert failures.left_out() == frozenset()


def test_failures_long_apart_are_chance() -> None:
    clock = Clock()
    failures = RecentFailures(clock)
    for _ in range(5):
        failures.note(Loss("attic", "attic-pc", DIED, 0.0))
        clock.now_s += REMEMBERED_S
        assert not failures.left_out()


@pytest.mark.parametrize(
    "loss",
    [
        Loss("", "", DIED, 0.0),  # this machine: there is no doing without it
        Loss("attic", "attic-pc", DIED, 0.0, leaves=True),
        Loss("attic", "attic-pc", Reason("lend_taken_back"), 0.0),
    ],
)
def test_what_is_no_failure_of_the_machine_does_not_count(loss: Loss) -> None:
    failures = RecentFailures(Clock())
    for _ in range(3):
        failures.note(loss)
    assert not failures.left_out()


def test_of_few_machines_alone_it_is_remembered() -> None:
    failures = RecentFailures(Clock())
    for number in range(3 * MOST_MACHINES):
        for _ in range(2):
            failures.note(Loss(f"id-{number}", "", DIED, 0.0))
    assert len(failures.left_out()) == MOST_MACHINES


def test_a_failure_that_an_answer_caused_is_forgiven() -> None:
    failures = RecentFailures(Clock())
    for _ in range(2):
        failures.note(Loss("attic", "attic-pc", DIED, 0.0))
    failures.forgive(["attic", "nobody", ""])
    assert not failures.left_out()
    failures.note(Loss("attic", "attic-pc", DIED, 0.0))
    assert failures.left_out() == {"attic"}
