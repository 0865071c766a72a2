"""The state machine of this machine's lending: Off, Ready, Working, Draining or Paused, and the steps between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, assert_never

from app.core.errors import Reason
from app.core.ids import MachineId
from app.core.lending.policy import Allowed, Denied, NothingLent, Verdict

# How long no frame has passed when a pause may interrupt: between two answers, it costs nobody anything. Within an
# answer, another machine may compute for longer than this, so hosts report whether an answer is in progress.
QUIET_SECONDS = 2.0

OWNER = Reason("pause_owner")
STOPPED = Reason("pause_stopped")
OFF = Reason("lend_off")


@dataclass(frozen=True, slots=True)
class Off:
    """The owner lends nothing."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Hosts may request memory; none has layers here."""


@dataclass(frozen=True, slots=True)
class Working:
    """Some machines have layers here."""

    hosts: frozenset[MachineId]


@dataclass(frozen=True, slots=True)
class Paused:
    """A pause of lending.

    by_owner: paused by hand, which rules alone do not end. until_s: paused by hand until then, after which it ends by
    itself.
    """

    why: Reason
    by_owner: bool = False
    until_s: float | None = None


@dataclass(frozen=True, slots=True)
class Draining:
    """Running answers may finish until the deadline, and nothing new begins. `then` is the next state."""

    hosts: frozenset[MachineId]
    deadline_s: float
    then: Paused | Off


StateWord = Literal["off", "ready", "lending", "working", "draining", "paused"]
State = Off | Ready | Working | Draining | Paused


@dataclass(frozen=True, slots=True)
class Pause:
    """The owner pauses, until a moment or until resumed. A deadline of now stops at once."""

    deadline_s: float
    until_s: float | None = None
    why: Reason = OWNER


@dataclass(frozen=True, slots=True)
class Resume:
    """The owner lends again."""


@dataclass(frozen=True, slots=True)
class PolicyApplied:
    """The rules were applied. What they deny must be released by the deadline."""

    verdict: Verdict
    deadline_s: float


@dataclass(frozen=True, slots=True)
class StagesInspected:
    """A look at the lent stages: which hosts have layers here, how long no frame has passed, and whether a host reports
    that an answer passes here."""

    now_s: float
    hosts: frozenset[MachineId]
    quiet_s: float
    answers: bool = False


Event = Pause | Resume | PolicyApplied | StagesInspected


@dataclass(frozen=True, slots=True)
class GiveBack:
    """End all lending now. `why` is the reason that the hosts are given."""

    why: Reason


Steps = tuple[State, tuple[GiveBack, ...]]


def step(state: State, event: Event) -> Steps:
    """Return the state after the event, and the actions to take."""
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
            return state, ()  # a pause set by a rule ends only by the rules


def reason_of(state: State) -> Reason | None:
    """Return the reason that nothing is lent, or soon nothing will be."""
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
    """Return the one-word state for the faces and the other machines."""
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
    """Release what is lent first, if anything. A drain that has begun never gets longer."""
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
            over = ended or seen.now_s >= deadline_s  # at the deadline, no matter what a host reports
            ends = (GiveBack(reason_of(then) or OFF),) if over else ()
            return replace(state, hosts=seen.hosts), ends
        case Off() | Paused() if seen.hosts:  # a host opened it just as the pause began
            return state, (GiveBack(reason_of(state) or OFF),)
        case _:
            return state, ()
