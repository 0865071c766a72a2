"""Tests of the decisions when a placement breaks: each state, and that every path ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import Reason
from app.core.reasons import said
from app.core.recovery import recovery
from app.core.recovery.recovery import (
    CALM_TOKENS,
    MAX_RECOVERIES,
    WAIT_S,
    Build,
    Built,
    Event,
    GiveUp,
    HouseholdChanged,
    InterruptionRecord,
    Loss,
    Notify,
    Over,
    Plan,
    PlanFailed,
    Planned,
    Planning,
    Rebuilding,
    Resume,
    Short,
    Steady,
    Wait,
    WaitExpired,
    leaving_notice,
    shortage_reason,
    step,
)

WHY = Reason("stage_unreachable", {"machine": "attic"})
MISSING = Reason("said_by_node", {"sentence": "7 GiB are missing."})
SHORT = Reason("recovery_short", {"machine": "attic", "what": MISSING})
LOSS = Loss("a", "attic", WHY, at_s=100.0, silent_s=0.5)
GONE = Loss("a", "attic", WHY, at_s=100.0, is_gone=True)
OTHER = Loss("k", "kitchen", WHY, at_s=103.0)


def run(*events: Event) -> tuple[recovery.State, list[recovery.Command]]:
    """The state after these events, and what the last one asks for."""
    state: recovery.State = Steady()
    commands: tuple[recovery.Command, ...] = ()
    for event in events:
        state, commands = step(state, event)
    return state, list(commands)


def spoken(commands: list[recovery.Command]) -> list[str]:
    return [said(command.notice.reason) for command in commands if isinstance(command, Notify)]


def test_a_loss_is_said_and_planned_around() -> None:
    state, commands = run(LOSS)
    assert state == Planning(LOSS, 1, frozenset(), frozenset({"a"}))
    assert commands[-1] == Plan()
    assert len(spoken(commands)) == 1


def test_what_cannot_be_reached_is_left_out_of_the_plan() -> None:
    assert run(GONE)[1][-1] == Plan(frozenset({"a"}))


@pytest.mark.parametrize(
    ("machines", "words"),
    [
        (("kitchen",), "Lost attic. Loading its layers on kitchen (about 40 s)."),
        (("kitchen", "den"), "Lost attic. Loading its layers on kitchen and den (about 40 s)."),
        (("attic",), "attic lost its layers. Loading them again (about 40 s)."),
        ((), "attic stopped responding. The answer is restarting from the text so far (about 40 s)."),
    ],
)
def test_it_is_said_who_takes_over_and_how_long_it_takes(machines: tuple[str, ...], words: str) -> None:
    state, commands = run(LOSS, Planned(machines, 30.2, replay_s=10))
    assert isinstance(state, Rebuilding)
    assert commands[-1] == Build()
    assert spoken(commands) == [words]


def test_an_owner_who_takes_memory_back_has_lost_nothing() -> None:
    taken = Loss("a", "attic", Reason("lend_taken_back", {"machine": "attic", "why": Reason("pause_card_off")}), 100.0)
    assert spoken(run(taken, Planned(("den",), 3))[1]) == [
        "attic took its memory back. Loading its layers on den (about 3 s)."
    ]


def test_nobody_is_blamed_for_what_was_meant() -> None:
    leaving_notice = Loss("a", "attic", WHY, at_s=100.0, is_gone=True, leaves=True)
    handed_over = spoken(run(leaving_notice, Planned((), 1))[1])[0]
    assert handed_over.startswith("attic is leaving. Other machines already hold its layers.")
    moved = Loss("", "", Reason("recovery_better"), at_s=100.0)
    for machines in ((), ("kitchen",)):
        words = spoken(run(moved, Planned(machines, 3))[1])
        assert words == ["Moving the layers (about 3 s)."]


def test_when_it_stands_the_answers_go_on() -> None:
    assert run(LOSS, Planned(("den",), 3), Built()) == (Steady(), [Resume()])


def test_a_second_loss_is_planned_around_too() -> None:
    """The same machine twice is not tried a third time."""
    assert run(LOSS, Planned((), 1), OTHER)[1][-1] == Plan()
    assert run(LOSS, Planned((), 1), LOSS)[1][-1] == Plan(frozenset({"a"}))
    assert run(LOSS, OTHER, OTHER)[1][-1] == Plan(frozenset({"k"}))
    assert run(GONE, OTHER)[1][-1] == Plan(frozenset({"a"}))


def test_it_is_tried_three_times() -> None:
    state, commands = run(LOSS, *[OTHER] * (MAX_RECOVERIES - 1))
    assert isinstance(state, Planning)
    state, commands = run(LOSS, *[OTHER] * MAX_RECOVERIES)
    assert isinstance(state, Over)
    assert commands == [GiveUp(state.why)]
    assert said(state.why)


def test_what_does_not_fit_waits_for_a_machine() -> None:
    state, commands = run(GONE, PlanFailed(SHORT))
    assert state == Short(Planning(GONE, 1, frozenset({"a"}), frozenset({"a"})), SHORT, 100 + WAIT_S)
    assert commands[-1] == Wait(100 + WAIT_S)
    assert "7 GiB" in spoken(commands)[0]
    # whoever came may be the one that was lost
    assert run(GONE, PlanFailed(SHORT), HouseholdChanged())[1] == [Plan()]


def test_what_was_waited_for_in_vain_is_not_promised_any_more() -> None:
    """The answer is over then: nothing goes on by itself."""
    state, commands = run(GONE, PlanFailed(SHORT), WaitExpired())
    assert isinstance(state, Over)
    assert commands == [GiveUp(state.why)]
    words = said(state.why)
    assert "7 GiB are missing." in words
    assert "10 minutes" in words
    assert "The answer continues when" not in words


def test_nobody_returns_where_memory_alone_is_missing() -> None:
    """This machine's own worker ended, or the layers were moved: no machine is waited for."""
    words = said(shortage_reason(Loss("", "den", WHY, at_s=0.0), MISSING))
    assert "7 GiB are missing." in words
    assert "den" not in words
    assert said(shortage_reason(LOSS, MISSING)) == said(SHORT)


def test_a_machine_that_leaves_computes_on_until_others_have_its_layers() -> None:
    notice = leaving_notice("attic", ("kitchen", "den"), 40.2)
    assert said(notice.reason) == (
        "attic is leaving. It continues to compute while its layers are loaded on kitchen and den (about 40 s)."
    )
    assert (notice.state, notice.machine) == ("leaving", "attic")


def test_what_is_still_missing_is_not_said_again() -> None:
    state, commands = run(GONE, PlanFailed(SHORT), HouseholdChanged(), PlanFailed(SHORT))
    assert commands == [Wait(100 + WAIT_S)]
    assert isinstance(state, Short)
    less = Reason("recovery_short", {"machine": "attic", "what": "2 GiB are missing."})
    assert "2 GiB" in spoken(run(GONE, PlanFailed(SHORT), HouseholdChanged(), PlanFailed(less))[1])[0]


@pytest.mark.parametrize("event", [Built(), HouseholdChanged(), WaitExpired(), Planned((), 1), PlanFailed(SHORT)])
def test_news_that_does_not_fit_changes_nothing(event: Event) -> None:
    for state in (Steady(), Over(SHORT)):
        assert step(state, event) == (state, ())


EVENTS = st.sampled_from([LOSS, GONE, OTHER, Planned(("den",), 1), PlanFailed(SHORT), Built(), HouseholdChanged()])


@given(st.lists(EVENTS, max_size=40))
def test_each_state_asks_for_one_thing(events: list[Event]) -> None:
    """A final state asks for nothing, so that nobody waits forever."""
    state: recovery.State = Steady()
    for event in events:
        before = state
        state, commands = step(state, event)
        requests = [command for command in commands if not isinstance(command, Notify)]
        assert len(requests) == (1 if commands else 0)
        if isinstance(before, Over):
            assert (state, commands) == (before, ())
        if isinstance(state, Planning):
            assert state.tries <= MAX_RECOVERIES


def test_an_answer_remembers_what_it_went_through() -> None:
    answer = InterruptionRecord()
    assert answer.record_recovery(1.0) is None
    for n in range(MAX_RECOVERIES):
        assert answer.record_loss(Loss("a", "attic", WHY, at_s=10.0 * n, silent_s=0.25))
        answer.record_notice(recovery.Notice("lost", "attic", WHY))
        if n == 0:
            moved = Reason("recovery_moved", {"machine": "attic", "to": "den"})
            answer.record_notice(recovery.Notice("rebuilding", "attic", moved))
        done = answer.record_recovery(10.0 * n + 3)
        assert done is not None
        assert (done.machine, done.detected_after_s, done.recovered_after_s) == ("attic", 0.25, 3.0)
        assert done.others == ("den" if n == 0 else ""), "who took over before is not named again"
        assert said(recovery.continued_notice(done).reason) == "Continued after 3 s."
    assert not answer.record_loss(LOSS)
    assert len(answer.recovered) == MAX_RECOVERIES


def test_a_loss_while_it_is_mended_counts_from_the_first() -> None:
    answer = InterruptionRecord()
    answer.record_loss(LOSS)
    answer.record_loss(OTHER)
    done = answer.record_recovery(105.0)
    assert done is not None
    assert (done.machine, done.recovered_after_s) == ("attic", 5.0)


def test_a_connection_that_is_made_again_is_said() -> None:
    assert said(recovery.reconnecting_notice("attic").reason) == "attic stopped responding. Reconnecting…"
    assert "0.4 s" in said(recovery.reconnected_notice("attic", 0.42).reason)


CRASHED = Reason("worker_crashed", {"worker": "den", "how": "by SIGSEGV", "words": ""})
THERE = Reason("lender_said", {"machine": "attic", "what": Reason("engine_gave_up")})
DIED = Reason("worker_died", {"worker": "den", "how": "by SIGKILL", "words": ""})


def in_step(why: Reason, machine: str = "") -> Loss:
    return Loss(machine, machine, why, 0.0, slots=frozenset({1}))


@pytest.mark.parametrize(
    ("deaths", "is_special", "is_cause"),
    [
        ([(CRASHED, "")], False, False),  # it may be chance
        ([(CRASHED, ""), (CRASHED, "")], False, True),
        ([(CRASHED, "attic"), (CRASHED, "attic")], False, True),  # no signal of somebody else's
        ([(THERE, "attic"), (CRASHED, "")], False, True),
        ([(DIED, ""), (DIED, "")], False, False),  # whoever ended it: any answer computes the same
        ([(DIED, ""), (DIED, "")], True, True),
        ([(DIED, "attic"), (DIED, "attic")], True, False),  # that machine is left out first
        ([(DIED, "attic"), (DIED, "attic"), (DIED, "")], True, True),
        ([(DIED, "attic"), (DIED, "kitchen")], True, True),
    ],
)
def test_the_second_process_that_an_answer_ends_was_no_chance(
    deaths: list[tuple[Reason, str]], is_special: bool, is_cause: bool
) -> None:
    answer = InterruptionRecord()
    for why, machine in deaths:
        answer.record_death(in_step(why, machine), is_special)
    assert answer.is_cause(in_step(*deaths[-1])) is is_cause


def test_an_answer_is_suspected_for_some_tokens() -> None:
    answer = InterruptionRecord()
    answer.record_death(in_step(CRASHED), False)
    for _ in range(CALM_TOKENS):
        assert answer.is_suspected
        answer.count_token()
    assert not answer.is_suspected


def test_what_another_answer_did_is_taken_back() -> None:
    answer = InterruptionRecord()
    for _ in range(MAX_RECOVERIES):
        assert answer.record_loss(in_step(CRASHED))
    assert not answer.record_loss(in_step(CRASHED))
    answer.absolve(2)
    assert answer.times == MAX_RECOVERIES - 2
    assert answer.record_loss(in_step(CRASHED))


@pytest.mark.parametrize(
    ("why", "slots", "in_its_step"),
    [
        (CRASHED, frozenset({1}), True),
        (THERE, frozenset({1}), True),
        (DIED, frozenset({1}), True),
        (CRASHED, frozenset(), False),
        (Reason("stage_unreachable", {"machine": "attic"}), frozenset({1}), False),
        (Reason("numbers_not_finite"), frozenset({1}), False),
    ],
)
def test_what_ends_in_a_step(why: Reason, slots: frozenset[int], in_its_step: bool) -> None:
    assert recovery.ended_in_step(Loss("", "", why, 0.0, slots=slots)) is in_its_step


def test_what_nobody_knows_yet_ends_nobody() -> None:
    gave_up = in_step(Reason("engine_gave_up", {"worker": "den", "words": ""}))
    assert recovery.is_final(gave_up)
    assert not recovery.is_final(replace(gave_up, is_shared=True))


def test_who_ends_processes_is_told_what_to_change() -> None:
    words = said(recovery.ends_process_reason(in_step(CRASHED)))
    assert "2 times" in words
    assert "Change the question" in words
