"""The state machine of a pairing window: for each state and event, the next state and the commands to run.

See SAFETY.md 3. Events carry monotonic times in seconds. An attempt is counted before its proof is checked, so a
machine that disconnects early has still used it up. A machine occupies the window only after it has sent a proof.
Before that, handshakes run concurrently, so a machine that sends no proof blocks nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.core.errors import Reason
from app.core.ids import MachineId

MAX_TRIES = 3
WINDOW_SECONDS = 120.0
ATTEMPT_SECONDS = 10.0  # the time limit from the connection to the proof, and again from there until the log is sent
LINK_SECONDS = 15.0  # the time limit from sending the log to the first link


@dataclass(frozen=True, slots=True)
class Closed:
    """The state in which no window is open. `why` is None before the first window and after a canceled one."""

    why: Reason | None = None


@dataclass(frozen=True, slots=True)
class Open:
    """The state in which the code is shown and nobody has proved knowledge of it."""

    tries: int
    until_seconds: float


@dataclass(frozen=True, slots=True)
class Checking:
    """The state in which a proof has been received, counted as an attempt, and is being checked."""

    tries: int
    until_seconds: float
    attempt_until_seconds: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """The state in which the code has been proved and used up. The other machine must still sign its identity."""

    attempt_until_seconds: float


@dataclass(frozen=True, slots=True)
class Admitted:
    """The state in which `machine` has the log. It is not paired until its first link is up."""

    machine: MachineId
    until_seconds: float


@dataclass(frozen=True, slots=True)
class Done:
    """The state in which `machine` is paired."""

    machine: MachineId


State = Closed | Open | Checking | Exchange | Admitted | Done


@dataclass(frozen=True, slots=True)
class WindowRequested:
    """The user's request to open a window."""

    now_seconds: float


@dataclass(frozen=True, slots=True)
class ProofReceived:
    """The arrival of a proof or of an invalid SPAKE2 message."""

    now_seconds: float


@dataclass(frozen=True, slots=True)
class ProofAccepted:
    """An event reporting that the proof is correct."""


@dataclass(frozen=True, slots=True)
class ProofRejected:
    """An event reporting that a proof was wrong: somebody tried to guess the code or tampered with the messages."""


@dataclass(frozen=True, slots=True)
class Signed:
    """The arrival of the third message with a valid signature, which proves the identity of `machine`."""

    machine: MachineId
    now_seconds: float


@dataclass(frozen=True, slots=True)
class Linked:
    """An event reporting that a link passed the three checks."""

    machine: MachineId


@dataclass(frozen=True, slots=True)
class AttemptBroken:
    """The failure of an attempt because the connection was lost or a message was malformed or out of order."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """A timer event, on which deadlines are checked."""

    now_seconds: float


@dataclass(frozen=True, slots=True)
class Canceled:
    """The user's request to close the window."""


Event = (
    WindowRequested
    | ProofReceived
    | ProofAccepted
    | ProofRejected
    | Signed
    | Linked
    | AttemptBroken
    | TimePassed
    | Canceled
)


@dataclass(frozen=True, slots=True)
class ShowCode:
    """The command to generate a code, show it, and listen for machines that want to pair."""


@dataclass(frozen=True, slots=True)
class HideCode:
    """The command to invalidate the code and stop listening for machines."""


@dataclass(frozen=True, slots=True)
class RefuseProof:
    """The command to refuse a proof without reading it.

    This happens if no window is open, or if another proof has been accepted or is being checked.
    """


@dataclass(frozen=True, slots=True)
class Check:
    """The command to check the proof and report ProofAccepted or ProofRejected."""


@dataclass(frozen=True, slots=True)
class Confirm:
    """The command to send this machine's own proof and signature."""


@dataclass(frozen=True, slots=True)
class EndAttempt:
    """The command to end the attempt and report the reason."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Admit:
    """The command to admit `machine` for its first link and send it the log."""

    machine: MachineId


@dataclass(frozen=True, slots=True)
class AddMember:
    """The command to add `machine` to the log permanently and inform all members."""

    machine: MachineId


@dataclass(frozen=True, slots=True)
class RevokeAdmission:
    """The command to forget `machine` after its first link failed to come up."""

    machine: MachineId


Command = ShowCode | HideCode | RefuseProof | Check | Confirm | EndAttempt | Admit | AddMember | RevokeAdmission
Step = tuple[State, tuple[Command, ...]]

TOO_MANY = Reason("pairing_tries_used")  # for the machine that showed the code
ALL_WRONG = Reason("codes_wrong")  # for the machine on which the last wrong code was typed
EXPIRED = Reason("pairing_expired")
UNFINISHED = Reason("pairing_unfinished")
OUT_OF_ORDER = Reason("pairing_broken")


def step(state: State, event: Event) -> Step:
    """Return the next state of the window and the commands to run.

    An event without its own case ends the attempt or has no effect.
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
            return state, (RefuseProof(),)
        case ((Closed() | Done()), _):
            return state, ()
        case _, Canceled():
            return _closed(state, None)
        case Admitted(machine), Linked(other) if machine == other:
            return Done(machine), (AddMember(machine), HideCode())
        case ((Open() | Admitted()), _):
            return state, ()
        case _:
            return _attempt(state, event)


def _attempt(state: Checking | Exchange, event: Event) -> Step:
    """Advance an attempt, which expects ProofAccepted and then Signed.

    Any other message ends it, as does the deadline.
    """
    match state, event:
        case Checking(_, _, end), ProofAccepted():
            return Exchange(end), (Confirm(),)  # the code is used up, so the window cannot return to Open
        case Exchange(), Signed(machine, now):
            return Admitted(machine, now + LINK_SECONDS), (Admit(machine),)
        case Checking(), ProofRejected():
            return _after_attempt(state, wrong=True)
        case _, (TimePassed(now) | WindowRequested(now)) if now < state.attempt_until_seconds:
            return state, ()
        case _, WindowRequested() | Linked():
            return state, ()
        case Exchange(), _:
            return Closed(UNFINISHED), (EndAttempt(UNFINISHED), HideCode())
        case Checking(), _:
            return _after_attempt(state, wrong=False)


def _after_attempt(state: Checking, wrong: bool) -> Step:
    """Reopen the window if attempts remain. Otherwise close it."""
    if state.tries == 0:
        return Closed(TOO_MANY), (EndAttempt(ALL_WRONG), HideCode())
    why = Reason("code_wrong", {"tries_left": state.tries}) if wrong else OUT_OF_ORDER
    return Open(state.tries, state.until_seconds), (EndAttempt(why),)


def _time_is_up(state: Open | Admitted) -> Step:
    if isinstance(state, Admitted):
        return Closed(UNFINISHED), (RevokeAdmission(state.machine), HideCode())
    return Closed(EXPIRED), (HideCode(),)


def _closed(state: State, why: Reason | None) -> Step:
    if isinstance(state, Admitted):
        return Closed(UNFINISHED), (RevokeAdmission(state.machine), HideCode())
    return Closed(why), (HideCode(),)
