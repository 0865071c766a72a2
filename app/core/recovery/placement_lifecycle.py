"""The life of a placement as a table: what each event makes of it. Loading, ready, recovering, lost, ended.

Seconds are monotonic and come in with the events. Why a placement was lost may be known before its end shows it, or
better: a machine that leaves says so, and its broken links only say that it is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.core.errors import Reason
from app.core.recovery.recovery import Notice

BLAME_SECONDS = 5.0  # after the end of what was lost, for news of the true cause


@dataclass(frozen=True, slots=True)
class Loading:
    """Its stages are being opened and proved."""


@dataclass(frozen=True, slots=True)
class Ready:
    """It answers. `blamed`: why it will have been lost, where that is known already."""

    blamed: Reason | None = None


@dataclass(frozen=True, slots=True)
class Recovering:
    """What was lost is being placed anew under its answers; `notice` says what and how."""

    notice: Notice
    blamed: Reason | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """It answers no more, and its memory is being given back."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Ended:
    """All of its memory is given back. `why` is None where it was stopped, or never became ready."""

    at_s: float
    why: Reason | None = None


State = Loading | Ready | Recovering | Lost | Ended


@dataclass(frozen=True, slots=True)
class Opened:
    """All stages are open and proved."""


@dataclass(frozen=True, slots=True)
class Told:
    """What its pipelines say while they are mended; None: all of them are well."""

    notice: Notice | None


@dataclass(frozen=True, slots=True)
class Blamed:
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


Event = Opened | Told | Blamed | Broke | Closed


def step(state: State, event: Event) -> State:
    """Return what the event makes of it; what means nothing to a state leaves it as it is."""
    match state, event:
        case Loading(), Opened():
            return Ready()
        case ((Ready(blamed) | Recovering(_, blamed)), Told(notice)):
            return Recovering(notice, blamed) if notice is not None else Ready(blamed)
        case ((Ready() | Recovering()), Blamed(why)):
            return replace(state, blamed=why)
        case ((Ready(blamed) | Recovering(_, blamed)), Broke(why)):
            return Lost(blamed or why)
        case Lost(), Blamed(why):
            return Lost(why)
        case Ended(at_s, known), Blamed(why, now_s) if known is not None:
            return Ended(at_s, why if now_s - at_s < BLAME_SECONDS else known)
        case Lost(why), Closed(now_s):
            return Ended(now_s, why)
        case ((Loading() | Ready() | Recovering()), Closed(now_s)):
            return Ended(now_s)
        case _:
            return state
