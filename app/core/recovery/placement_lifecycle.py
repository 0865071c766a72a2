"""The lifecycle of a placement as a state machine: loading, ready, recovering, lost, ended.

Events carry monotonic times in seconds. The true cause of a loss may become known before or after the loss itself: a
machine that leaves announces it, but a broken link only shows that the machine is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.core.errors import Reason
from app.core.recovery.recovery import Notice

BLAME_SECONDS = 5.0  # the time after a loss within which its true cause may still replace the reported one


@dataclass(frozen=True, slots=True)
class Loading:
    """The state in which the stages are being opened and checked."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The state in which the placement can answer. `known_cause`: the reason for an expected loss, if already known."""

    known_cause: Reason | None = None


@dataclass(frozen=True, slots=True)
class Recovering:
    """The state in which lost stages are being replaced. `notice` tells the user about the recovery."""

    notice: Notice
    known_cause: Reason | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """The state in which the placement can no longer answer and its memory is being released."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Ended:
    """The state in which all memory is released. `why` is None if the placement was stopped or never became ready."""

    at_s: float
    why: Reason | None = None


State = Loading | Ready | Recovering | Lost | Ended


@dataclass(frozen=True, slots=True)
class Opened:
    """An event reporting that all stages are open and passed their checks."""


@dataclass(frozen=True, slots=True)
class NoticeReceived:
    """An event that carries a pipeline's recovery notice, or None once all pipelines work again."""

    notice: Notice | None


@dataclass(frozen=True, slots=True)
class CauseFound:
    """An event reporting the true cause of a past or expected loss."""

    why: Reason
    now_s: float


@dataclass(frozen=True, slots=True)
class PipelinesLost:
    """An event reporting that no pipeline remains. `why` is what the pipelines themselves reported."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Closed:
    """An event reporting that all memory has been released."""

    now_s: float


Event = Opened | NoticeReceived | CauseFound | PipelinesLost | Closed


def step(state: State, event: Event) -> State:
    """Return the state after an event. Events that do not apply to a state leave it unchanged."""
    match state, event:
        case Loading(), Opened():
            return Ready()
        case ((Ready(known_cause) | Recovering(_, known_cause)), NoticeReceived(notice)):
            return Recovering(notice, known_cause) if notice is not None else Ready(known_cause)
        case ((Ready() | Recovering()), CauseFound(why)):
            return replace(state, known_cause=why)
        case ((Ready(known_cause) | Recovering(_, known_cause)), PipelinesLost(why)):
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
