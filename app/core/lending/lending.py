"""The state machine of lending on this machine: off, ready, working, draining or paused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, assert_never

from app.core.errors import Reason
from app.core.ids import MachineId
from app.core.lending.policy import Allowed, Denied, NothingLent, Verdict

# A pause may interrupt after this much time without a frame: between two answers, that costs nobody anything. Within an
# answer, another machine may compute for longer, so hosts report whether an answer is in progress.
QUIET_SECONDS = 2.0

OWNER = Reason("pause_owner")
STOPPED = Reason("pause_stopped")
OFF = Reason("lend_off")


@dataclass(frozen=True, slots=True)
class Off:
    """The state in which the owner lends nothing."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The state in which hosts may request memory, but none has loaded layers on this machine."""


@dataclass(frozen=True, slots=True)
class Working:
    """The state in which hosts have loaded layers on this machine."""

    hosts: frozenset[MachineId]


@dataclass(frozen=True, slots=True)
class Paused:
    """The state in which lending is paused.

    by_owner: whether the owner paused it. If so, the rules cannot end the pause. until_s: when a pause by the owner
    ends automatically, or None.
    """

    why: Reason
    by_owner: bool = False
    until_s: float | None = None


@dataclass(frozen=True, slots=True)
class Draining:
    """The state in which running answers may finish before the deadline, but no new ones start.

    `then` is the next state.
    """

    hosts: frozenset[MachineId]
    deadline_s: float
    then: Paused | Off


StateWord = Literal["off", "ready", "lending", "working", "draining", "paused"]
State = Off | Ready | Working | Draining | Paused


@dataclass(frozen=True, slots=True)
class Pause:
    """The owner's request to pause lending until `until_s`, or until it is resumed.

    If the deadline is now, running answers are ended.
    """

    deadline_s: float
    until_s: float | None = None
    why: Reason = OWNER


@dataclass(frozen=True, slots=True)
class Resume:
    """The owner's request to resume lending."""


@dataclass(frozen=True, slots=True)
class PolicyApplied:
    """A new verdict of the lending policy. Memory that it no longer allows must be released before the deadline."""

    verdict: Verdict
    deadline_s: float


@dataclass(frozen=True, slots=True)
class StagesInspected:
    """The result of inspecting the lent stages.

    hosts: the machines that have layers here. quiet_s: the time since the last frame. answers: whether a host reports
    an answer in progress.
    """

    now_s: float
    hosts: frozenset[MachineId]
    quiet_s: float
    answers: bool = False


Event = Pause | Resume | PolicyApplied | StagesInspected


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The command to end all lending now. `why` is the reason sent to the hosts."""

    why: Reason


Steps = tuple[State, tuple[GiveBack, ...]]


def step(state: State, event: Event) -> Steps:
    """Return the state after the event and the commands to run."""
    match state, event:
        case _, Pause(deadline_s, until_s, why):
            return _leave(state, Paused(why, True, until_s), deadline_s), ()
        case Paused(by_owner=True), Resume():
            return Ready(), ()
        case Draining(hosts, _, Paused(by_owner=True)), Resume():
            return Working(hosts), ()
        case _, PolicyApplied(verdict, deadline_s):
            return _with_policy(state, verdict, deadline_s), ()
        case _, StagesInspected():
            return _inspected(state, event)
        case _:
            return state, ()  # only the rules end a pause that a rule began


def reason_of(state: State) -> Reason | None:
    """Return why nothing is lent, or why lending is about to end. Return None otherwise."""
    match state:
        case Off():
            return OFF
        case Paused(why):
            return why
        case Draining(then=then):
            return reason_of(then)
        case _:
            return None


def state_word(state: State) -> StateWord:
    """Return the state in one word, for the user interfaces and the other machines."""
    match state:
        case Off():
            return "off"
        case Ready():
            return "ready"
        case Working():
            return "working"
        case Draining():
            return "draining"
        case Paused():
            return "paused"
        case _:
            assert_never(state)


def _leave(state: State, then: Paused | Off, deadline_s: float) -> State:
    """Change to `then`, after draining if anything is lent. A drain in progress is never extended."""
    match state:
        case Working(hosts):
            return Draining(hosts, deadline_s, then)
        case Draining(hosts, earlier_s, _):
            return Draining(hosts, min(earlier_s, deadline_s), then)
        case _:
            return then


def _with_policy(state: State, verdict: Verdict, deadline_s: float) -> State:
    match verdict, state:
        case NothingLent(), _:
            return _leave(state, Off(), deadline_s)
        case _, Paused(by_owner=True) | Draining(then=Paused(by_owner=True)):
            return state
        case Denied(why), _:
            return _leave(state, Paused(why), deadline_s)
        case Allowed(), Draining(hosts):
            return Working(hosts)
        case Allowed(), Off() | Paused():
            return Ready()
        case _:
            return state


def _inspected(state: State, seen: StagesInspected) -> Steps:
    match state:
        case Paused(until_s=float(until_s)) if seen.now_s >= until_s:
            return Ready(), ()
        case Ready() | Working():
            return (Working(seen.hosts) if seen.hosts else Ready()), ()
        case Draining(then=then) if not seen.hosts:
            return then, ()
        case Draining(_, deadline_s, then):
            ended = seen.quiet_s >= QUIET_SECONDS and not seen.answers
            over = ended or seen.now_s >= deadline_s  # the deadline applies regardless of what a host reports
            ends = (GiveBack(reason_of(then) or OFF),) if over else ()
            return replace(state, hosts=seen.hosts), ends
        case Off() | Paused() if seen.hosts:  # a host opened a stage just as the pause began
            return state, (GiveBack(reason_of(state) or OFF),)
        case _:
            return state, ()
