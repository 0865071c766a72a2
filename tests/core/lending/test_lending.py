"""Tests of the states of lending: pauses by hand and by rule, drains that end, and immediate stops."""

from __future__ import annotations

import random

import pytest

from app.core.errors import Reason
from app.core.ids import MachineId
from app.core.lending.lending import (
    OFF,
    OWNER,
    QUIET_SECONDS,
    STOPPED,
    Draining,
    Event,
    GiveBack,
    Off,
    Pause,
    Paused,
    PolicyApplied,
    Ready,
    Resume,
    StagesInspected,
    State,
    Working,
    reason_of,
    state_word,
    step,
)
from app.core.lending.policy import Allowed, Denied, NothingLent

A, B = MachineId("a" * 64), MachineId("b" * 64)
BATTERY, GAME = Reason("pause_battery"), Reason("pause_program")
NOBODY: frozenset[MachineId] = frozenset()
HOSTS = frozenset({A})
YES, NO, NONE = (
    PolicyApplied(Allowed(1), 30.0),
    PolicyApplied(Denied(BATTERY, 0.0), 30.0),
    PolicyApplied(NothingLent(), 30.0),
)
BY_RULE, BY_OWNER = Paused(BATTERY), Paused(OWNER, by_owner=True)
DRAINING = Draining(HOSTS, 30.0, BY_RULE)
BY_HAND = Draining(HOSTS, 30.0, BY_OWNER)


def looked(
    now: float, hosts: frozenset[MachineId] = HOSTS, quiet: float = 0.0, answers: bool = False
) -> StagesInspected:
    return StagesInspected(now, hosts, quiet, answers)


TABLE: list[tuple[State, Event, State, tuple[GiveBack, ...]]] = [
    (Off(), YES, Ready(), ()),
    (Off(), NO, BY_RULE, ()),
    (Off(), NONE, Off(), ()),
    (Ready(), NO, BY_RULE, ()),
    (Ready(), NONE, Off(), ()),
    (Ready(), looked(0), Working(HOSTS), ()),
    (Ready(), looked(0, NOBODY), Ready(), ()),
    (Working(HOSTS), looked(0, NOBODY), Ready(), ()),
    (Working(HOSTS), looked(0, frozenset({A, B})), Working(frozenset({A, B})), ()),
    (Working(HOSTS), YES, Working(HOSTS), ()),
    (Working(HOSTS), NO, DRAINING, ()),
    (Working(HOSTS), NONE, Draining(HOSTS, 30.0, Off()), ()),
    (DRAINING, YES, Working(HOSTS), ()),  # the reason went before the memory had to
    (DRAINING, PolicyApplied(Denied(GAME, 0.0), 50.0), Draining(HOSTS, 30.0, Paused(GAME)), ()),
    (DRAINING, PolicyApplied(Denied(BATTERY, 0.0), 5.0), Draining(HOSTS, 5.0, BY_RULE), ()),
    (DRAINING, looked(29.9), DRAINING, ()),
    (DRAINING, looked(30.0), DRAINING, (GiveBack(BATTERY),)),
    (DRAINING, looked(3.0, quiet=QUIET_SECONDS), DRAINING, (GiveBack(BATTERY),)),
    (DRAINING, looked(29.9, quiet=9.0, answers=True), DRAINING, ()),  # another machine computes
    (DRAINING, looked(30.0, quiet=9.0, answers=True), DRAINING, (GiveBack(BATTERY),)),
    (DRAINING, looked(3.0, NOBODY), BY_RULE, ()),
    (BY_RULE, YES, Ready(), ()),
    (BY_RULE, looked(9.0), BY_RULE, (GiveBack(BATTERY),)),  # opened in the moment of the pause
    (Off(), looked(9.0), Off(), (GiveBack(OFF),)),
    (Ready(), Pause(30.0), BY_OWNER, ()),
    (Working(HOSTS), Pause(30.0), BY_HAND, ()),
    (Working(HOSTS), Pause(0.0, None, STOPPED), Draining(HOSTS, 0.0, Paused(STOPPED, True)), ()),
    (DRAINING, Pause(0.0), Draining(HOSTS, 0.0, BY_OWNER), ()),
    (BY_HAND, YES, BY_HAND, ()),
    (BY_HAND, NO, BY_HAND, ()),
    (BY_HAND, Resume(), Working(HOSTS), ()),
    (BY_HAND, NONE, Draining(HOSTS, 30.0, Off()), ()),
    (BY_OWNER, YES, BY_OWNER, ()),
    (BY_OWNER, NO, BY_OWNER, ()),
    (BY_OWNER, Resume(), Ready(), ()),
    (BY_OWNER, looked(1e9, NOBODY), BY_OWNER, ()),
    (BY_RULE, Resume(), BY_RULE, ()),
    (DRAINING, Resume(), DRAINING, ()),
    (Ready(), Resume(), Ready(), ()),
    (Ready(), Pause(0.0, 100.0), Paused(OWNER, True, 100.0), ()),
    (Paused(OWNER, True, 100.0), looked(99.0, NOBODY), Paused(OWNER, True, 100.0), ()),
    (Paused(OWNER, True, 100.0), looked(100.0, NOBODY), Ready(), ()),
    (Paused(OWNER, True, 100.0), looked(99.0), Paused(OWNER, True, 100.0), (GiveBack(OWNER),)),
]


@pytest.mark.parametrize(("state", "event", "after", "commands"), TABLE)
def test_the_table(state: State, event: Event, after: State, commands: tuple[GiveBack, ...]) -> None:
    assert step(state, event) == (after, commands)


@pytest.mark.parametrize(
    ("state", "label", "why"),
    [
        (Off(), "off", OFF),
        (Ready(), "ready", None),
        (Working(HOSTS), "working", None),
        (DRAINING, "draining", BATTERY),
        (Draining(HOSTS, 1.0, Off()), "draining", OFF),
        (BY_OWNER, "paused", OWNER),
    ],
)
def test_every_state_has_a_word_and_each_pause_a_reason(state: State, label: str, why: Reason | None) -> None:
    assert (state_word(state), reason_of(state)) == (label, why)


def test_whatever_happens_a_denied_machine_ends_with_nobody_on_it() -> None:
    """Random news; then the rules say no: within the drain's time everything is asked back."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    for _ in range(300):
        state: State = Off()
        events: list[Event] = [YES, NO, NONE, Pause(30.0), Pause(0.0, 50.0, STOPPED), Resume(),
                               looked(5.0), looked(6.0, NOBODY), looked(7.0, quiet=3.0)]  # fmt: skip
        for event in chance.choices(events, k=12):
            state, _ = step(state, event)
        state, _ = step(state, looked(8.0))
        state, _ = step(state, PolicyApplied(Denied(GAME, 8.0), 38.0))
        assert state_word(state) in ("draining", "paused", "off"), f"seed {seed}"
        state, commands = step(state, looked(45.0))
        assert commands, f"seed {seed}: {state}"
        state, _ = step(state, looked(45.1, NOBODY))
        assert state_word(state) in ("paused", "off"), f"seed {seed}"
