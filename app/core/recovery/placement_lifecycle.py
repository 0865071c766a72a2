"""The lifecycle of a placement as a state machine: loading, ready, recovering, lost, ended.

Events carry monotonic times in seconds. The true cause of a loss may become known before or after the loss shows: a
machine that leaves says so, while its broken links only show that it is gone.
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
    """The state in which the placement answers. `known_cause`: why it is about to be lost, if already known."""

    known_cause: Reason | None = None


@dataclass(frozen=True, slots=True)
class Recovering:
    """The state in which lost stages are being replaced. `notice` tells which stages, and how."""

    notice: Notice
    known_cause: Reason | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """The state in which the placement has stopped answering and its memory is being released."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Ended:
    """The state in which all memory is released. `why` is None if the placement was stopped, or never became ready."""

    at_s: float
    why: Reason | None = None


State = Loading | Ready | Recovering | Lost | Ended


@dataclass(frozen=True, slots=True)
class Opened:
    """The event that all stages are open and passed their checks."""


@dataclass(frozen=True, slots=True)
class NoticeReceived:
    """The event that a pipeline reported a step of its recovery, or None once all pipelines work again."""

    notice: Notice | None


@dataclass(frozen=True, slots=True)
class CauseFound:
    """The event that the true cause of a past or imminent loss became known."""

    why: Reason
    now_s: float


@dataclass(frozen=True, slots=True)
class PipelinesLost:
    """The event that no pipeline is left. `why` is the reason as far as the network shows it."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Closed:
    """The event that all memory is released."""

    now_s: float


Event = Opened | NoticeReceived | CauseFound | PipelinesLost | Closed


def step(state: State, event: Event) -> State:
    """Return the state after an event. An event that has no meaning in a state leaves it unchanged."""
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
