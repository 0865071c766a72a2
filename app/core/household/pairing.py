"""A pairing window as a table: for each state and event, the next state and the commands to run.

See SAFETY.md 3. Seconds are monotonic and arrive with the events. A try is counted before its proof is checked, so
breaking off afterwards does not save it. A machine occupies the window only once it brings a proof: greetings are
heard concurrently, so a machine without a proof keeps nobody waiting.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.core.errors import Reason
from app.core.ids import MachineId

MAX_TRIES = 3
WINDOW_SECONDS = 120.0
ATTEMPT_SECONDS = 10.0  # for one attempt from the connection to its proof, and again from there to the sent log
LINK_SECONDS = 15.0  # from the sent log to the first real link


@dataclass(frozen=True, slots=True)
class Closed:
    """No window is open. `why` is None before the first window and after a cancelled one."""

    why: Reason | None = None


@dataclass(frozen=True, slots=True)
class Open:
    """The code is shown, and nobody has proved that they know it yet."""

    tries: int
    until_seconds: float


@dataclass(frozen=True, slots=True)
class Checking:
    """A proof has arrived, its try is counted, and it is being checked."""

    tries: int
    until_seconds: float
    attempt_until_seconds: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """The code is proved and used up. The other side still has to sign its identity."""

    attempt_until_seconds: float


@dataclass(frozen=True, slots=True)
class Admitted:
    """`machine` has the log, but is paired only when its link is up."""

    machine: MachineId
    until_seconds: float


@dataclass(frozen=True, slots=True)
class Done:
    """`machine` is paired."""

    machine: MachineId


State = Closed | Open | Checking | Exchange | Admitted | Done


@dataclass(frozen=True, slots=True)
class WindowRequested:
    """The user opens a window."""

    now_seconds: float


@dataclass(frozen=True, slots=True)
class ProofReceived:
    """A proof has arrived, or an invalid SPAKE2 message."""

    now_seconds: float


@dataclass(frozen=True, slots=True)
class ProofAccepted:
    """The proof is good."""


@dataclass(frozen=True, slots=True)
class ProofRejected:
    """The proof is bad: somebody guessed, or tampered with the numbers."""


@dataclass(frozen=True, slots=True)
class Signed:
    """The third message arrived with a valid signature, so this is really `machine`."""

    machine: MachineId
    now_seconds: float


@dataclass(frozen=True, slots=True)
class Linked:
    """A link that passed the three checks."""

    machine: MachineId


@dataclass(frozen=True, slots=True)
class Broken:
    """The current attempt ended: the connection was lost, or a message was out of order or malformed."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Some time has passed."""

    now_seconds: float


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The user closes the window."""


Event = (
    WindowRequested | ProofReceived | ProofAccepted | ProofRejected | Signed | Linked | Broken | TimePassed | Cancelled
)


@dataclass(frozen=True, slots=True)
class ShowCode:
    """Make a code, show it, and listen."""


@dataclass(frozen=True, slots=True)
class HideCode:
    """The code is void. Stop listening."""


@dataclass(frozen=True, slots=True)
class TurnAway:
    """Refuse the proof unread because no window is open, or another proof is accepted or being checked."""


@dataclass(frozen=True, slots=True)
class Check:
    """Check the proof, and report ProofAccepted or ProofRejected."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Send our own proof and signature."""


@dataclass(frozen=True, slots=True)
class Drop:
    """End the attempt, saying why."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Admit:
    """Let `machine` in for its first link, and send it the log."""

    machine: MachineId


@dataclass(frozen=True, slots=True)
class Keep:
    """Put `machine` into the log for good and tell all members."""

    machine: MachineId


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Forget `machine`, which never linked."""

    machine: MachineId


Command = ShowCode | HideCode | TurnAway | Check | Confirmed | Drop | Admit | Keep | Withdraw
Step = tuple[State, tuple[Command, ...]]

TOO_MANY = Reason("pairing_tries_used")  # for the machine that showed the code
ALL_WRONG = Reason("codes_wrong")  # for the machine where the last wrong code was typed
EXPIRED = Reason("pairing_expired")
UNFINISHED = Reason("pairing_unfinished")
OUT_OF_ORDER = Reason("pairing_broken")


def step(state: State, event: Event) -> Step:
    """Return the next state of the window and the commands to run.

    An event that is not listed here ends an attempt or does nothing.
    """
    match state, event:
        case ((Closed() | Done()), WindowRequested(now)):
            return Open(MAX_TRIES, now + WINDOW_SECONDS), (ShowCode(),)
        case ((Open() | Admitted()), TimePassed(now)) if now >= state.until_seconds:
            return _time_is_up(state)
        case Open(), ProofReceived(now) if now >= state.until_seconds:
            return _time_is_up(state)
        case Open(tries, until), ProofReceived(now):  # count the try before checking it
            return Checking(tries - 1, until, now + ATTEMPT_SECONDS), (Check(),)
        case _, ProofReceived():
            return state, (TurnAway(),)
        case ((Closed() | Done()), _):
            return state, ()
        case _, Cancelled():
            return _closed(state, None)
        case Admitted(machine), Linked(other) if machine == other:
            return Done(machine), (Keep(machine), HideCode())
        case ((Open() | Admitted()), _):
            return state, ()
        case _:
            return _attempt(state, event)


def _attempt(state: Checking | Exchange, event: Event) -> Step:
    """Accept Tried, Proved and Signed in this order only. Any other event ends the attempt."""
    match state, event:
        case Checking(_, _, end), ProofAccepted():
            return Exchange(end), (Confirmed(),)  # the code is used up, so there is no way back to Open
        case Exchange(), Signed(machine, now):
            return Admitted(machine, now + LINK_SECONDS), (Admit(machine),)
        case Checking(), ProofRejected():
            return _after_attempt(state, wrong=True)
        case _, (TimePassed(now) | WindowRequested(now)) if now < state.attempt_until_seconds:
            return state, ()
        case _, WindowRequested() | Linked():
            return state, ()
        case Exchange(), _:
            return Closed(UNFINISHED), (Drop(UNFINISHED), HideCode())
        case Checking(), _:
            return _after_attempt(state, wrong=False)


def _after_attempt(state: Checking, wrong: bool) -> Step:
    """Return to Open while tries are left."""
    if state.tries == 0:
        return Closed(TOO_MANY), (Drop(ALL_WRONG), HideCode())
    why = Reason("code_wrong", {"tries_left": state.tries}) if wrong else OUT_OF_ORDER
    return Open(state.tries, state.until_seconds), (Drop(why),)


def _time_is_up(state: Open | Admitted) -> Step:
    if isinstance(state, Admitted):
        return Closed(UNFINISHED), (Withdraw(state.machine), HideCode())
    return Closed(EXPIRED), (HideCode(),)


def _closed(state: State, why: Reason | None) -> Step:
    if isinstance(state, Admitted):
        return Closed(UNFINISHED), (Withdraw(state.machine), HideCode())
    return Closed(why), (HideCode(),)
