"""The table of a pairing window: the one right order, and all the wrong ones."""

from __future__ import annotations

import itertools

import pytest

from app.core.errors import Reason
from app.core.household.pairing import (
    ALL_WRONG,
    ATTEMPT_SECONDS,
    EXPIRED,
    LINK_SECONDS,
    OUT_OF_ORDER,
    TOO_MANY,
    UNFINISHED,
    WINDOW_SECONDS,
    AddMember,
    Admit,
    Admitted,
    AttemptBroken,
    Canceled,
    Check,
    Checking,
    Closed,
    Command,
    Confirm,
    Done,
    EndAttempt,
    Event,
    Exchange,
    HideCode,
    Linked,
    Open,
    ProofAccepted,
    ProofReceived,
    ProofRejected,
    RefuseProof,
    RevokeAdmission,
    ShowCode,
    Signed,
    State,
    TimePassed,
    WindowRequested,
    step,
)
from app.core.ids import MachineId

M = MachineId("a" * 64)
RIGHT: tuple[Event, ...] = (ProofReceived(1), ProofAccepted(), Signed(M, 2), Linked(M))


def run(*events: Event, state: State | None = None) -> tuple[State, list[Command]]:
    state = state or step(Closed(), WindowRequested(0))[0]
    done: list[Command] = []
    for event in events:
        state, commands = step(state, event)
        done += commands
    return state, done


def test_opening_shows_a_code() -> None:
    assert step(Closed(), WindowRequested(5)) == (Open(3, 5 + WINDOW_SECONDS), (ShowCode(),))


def test_the_right_order_pairs() -> None:
    state, commands = run(*RIGHT)
    assert state == Done(M)
    assert commands == [Check(), Confirm(), Admit(M), AddMember(M), HideCode()]


def test_every_other_order_of_the_same_events_admits_nobody() -> None:
    for order in itertools.permutations(RIGHT):
        state, commands = run(*order)
        if order != RIGHT:
            assert AddMember(M) not in commands
            assert not isinstance(state, Done)


def test_every_short_sequence_admits_only_through_the_right_one() -> None:
    """Whatever others send meanwhile: what it changes nothing by is left out."""
    events: list[Event] = [*RIGHT, ProofRejected(), AttemptBroken(), TimePassed(3)]
    for order in itertools.product(events, repeat=5):
        state, _ = step(Closed(), WindowRequested(0))
        counted: list[Event] = []
        for event in order:
            before = state
            state, commands = step(before, event)
            if state != before:
                counted.append(event)
            if Admit(M) in commands:
                assert tuple(counted[-3:]) == RIGHT[:3], order


def test_the_third_wrong_code_closes_the_window() -> None:
    wrong = (ProofReceived(1), ProofRejected())
    state, commands = run(*wrong)
    assert isinstance(state, Open)
    assert commands[-1] == EndAttempt(Reason("code_wrong", {"tries_left": 2}))
    state, commands = run(*wrong, *wrong)
    assert commands[-1] == EndAttempt(Reason("code_wrong", {"tries_left": 1}))
    state, commands = run(*wrong, *wrong, *wrong)
    assert state == Closed(TOO_MANY)
    assert commands[-2:] == [EndAttempt(ALL_WRONG), HideCode()]
    assert run(*wrong, *wrong, *wrong, *RIGHT)[0] == Closed(TOO_MANY)  # the fourth, though right


@pytest.mark.parametrize("end", [AttemptBroken(), TimePassed(ATTEMPT_SECONDS + 1)])
def test_a_try_is_counted_before_it_is_checked(end: Event) -> None:
    state, commands = run(ProofReceived(1), end)
    assert state == Open(2, WINDOW_SECONDS)
    assert commands[-1] == EndAttempt(OUT_OF_ORDER)


def test_one_proof_at_a_time() -> None:
    for n in range(1, 5):
        before, _ = run(*RIGHT[:n])
        assert step(before, ProofReceived(2)) == (before, (RefuseProof(),))


def test_a_proved_code_is_used_up() -> None:
    for end in (AttemptBroken(), ProofRejected(), TimePassed(ATTEMPT_SECONDS + 1)):
        state, commands = run(*RIGHT[:2], end)
        assert state == Closed(UNFINISHED)
        assert HideCode() in commands


def test_time_runs_out() -> None:
    assert run(TimePassed(WINDOW_SECONDS - 0.1))[0] == Open(3, WINDOW_SECONDS)
    for late in (TimePassed(WINDOW_SECONDS), ProofReceived(WINDOW_SECONDS)):
        assert run(late) == (Closed(EXPIRED), [HideCode()])
    state, commands = run(*RIGHT[:3], TimePassed(2 + LINK_SECONDS))
    assert state == Closed(UNFINISHED)
    assert commands[-2:] == [RevokeAdmission(M), HideCode()]


def test_an_attempt_may_end_after_the_window() -> None:
    state, _ = run(ProofReceived(WINDOW_SECONDS - 1), ProofAccepted(), TimePassed(WINDOW_SECONDS + 1))
    assert isinstance(state, Exchange)


def test_cancelling_ends_every_state() -> None:
    for n in range(4):
        state, commands = run(*RIGHT[:n], Canceled())
        assert isinstance(state, Closed)
        assert (RevokeAdmission(M) in commands) == (n == 3)
    assert run(*RIGHT, Canceled())[0] == Done(M)


def test_late_news_changes_nothing() -> None:
    for state in (Closed(EXPIRED), Done(M), Admitted(M, 9), Open(3, 9)):
        for event in (ProofAccepted(), ProofRejected(), AttemptBroken(), Linked(MachineId("b" * 64))):
            assert step(state, event) == (state, ())
    for attempt in (Checking(2, 9, 9), Exchange(9)):
        for news in (WindowRequested(1), Linked(M), TimePassed(1)):
            assert step(attempt, news) == (attempt, ())


def test_a_window_can_be_opened_again() -> None:
    for state in (Closed(TOO_MANY), Done(M)):
        assert step(state, WindowRequested(7)) == (Open(3, 7 + WINDOW_SECONDS), (ShowCode(),))
        assert step(state, ProofReceived(7)) == (state, (RefuseProof(),))
