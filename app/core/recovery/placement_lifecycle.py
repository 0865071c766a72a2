"""The lifecycle of a placement as a table: loading, ready, recovering, lost, ended.

Seconds are monotonic and come in with the events. The true cause of a loss may be known before or after its end shows:
a machine that leaves says so, while its broken links only show that it is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.core.errors import Reason
from app.core.recovery.recovery import Notice

BLAME_SECONDS = 5.0  # time after a loss during which its true cause may still become known


@dataclass(frozen=True, slots=True)
class Loading:
    """Its stages are being opened and proved."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The placement answers. `known_cause`: why it is about to be lost, if already known."""

    known_cause: Reason | None = None


@dataclass(frozen=True, slots=True)
class Recovering:
    """The lost stages are being placed again during answers. `notice` states which, and how."""

    notice: Notice
    known_cause: Reason | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """The placement has stopped answering, and its memory is being given back."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Ended:
    """All of its memory is released. `why` is None if it was stopped, or never became ready."""

    at_s: float
    why: Reason | None = None


State = Loading | Ready | Recovering | Lost | Ended


@dataclass(frozen=True, slots=True)
class Opened:
    """All stages are open and proved."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """A notice from its pipelines during recovery, or None once all of them are well."""

    notice: Notice | None


@dataclass(frozen=True, slots=True)
class CauseFound:
    """The true cause of an end that has come, or is about to show."""

    why: Reason
    now_s: float


@dataclass(frozen=True, slots=True)
class Broke:
    """No pipeline is left, as far as the network shows for this reason."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Closed:
    """All of its memory is given back."""

    now_s: float


Event = Opened | Noticed | CauseFound | Broke | Closed


def step(state: State, event: Event) -> State:
    """Return the state after an event. An event that has no meaning in a state leaves it unchanged."""
    match state, event:
        case Loading(), Opened():
            return Ready()
        case ((Ready(known_cause) | Recovering(_, known_cause)), Noticed(notice)):
            return Recovering(notice, known_cause) if notice is not None else Ready(known_cause)
        case ((Ready() | Recovering()), CauseFound(why)):
            return replace(state, known_cause=why)
        case ((Ready(known_cause) | Recovering(_, known_cause)), Broke(why)):
            return Lost(known_cause or why)
        case Lost(), CauseFound(why):
            return Lost(why)
        case Ended(at_s, known), CauseFound(why, now_s) if known is not None:
            return Ended(at_s, why if now_s - at_s < BLAME_SECONDS else known)
        case Lost(why), Closed(now_s):
            return Ended(now_s, why)
        case ((Loading() | Ready() | Recovering()), Closed(now_s)):
            return Ended(now_s)
        case _:
            return state
