"""The queue for slots: who waits, in which place, and about how long. Pure."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.scheduler.schedule import MAX_OVERTAKEN, Waiting

FIRST_S = 1.0  # of a request, before one has ended
NEWEST = 0.2  # the part that the newest request has in what is usual


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A request without a slot. `place`: 1 is the next; `seconds`: None before any answer has ended."""

    conversation: str | None
    place: int
    seconds: float | None


@dataclass(slots=True)
class UsualDuration:
    """The usual duration of a request, learned from the last ones."""

    seconds: float = FIRST_S
    is_known: bool = False

    def took(self, seconds: float) -> None:
        """Learn from a request that has ended."""
        part = NEWEST if self.is_known else 1.0
        self.seconds += part * (seconds - self.seconds)
        self.is_known = True

    def wait(self, n_before: int, slots: int) -> int:
        """Return the whole seconds until this many have had one of the slots; one at least."""
        return max(1, math.ceil(self.seconds * n_before / slots))


def queue_place(waiting: Sequence[Waiting], goes_first: bool) -> int:
    """The place of a new request in line. One that goes first overtakes the others, each of them MAX_OVERTAKEN times
    at most, and they count it."""
    place = len(waiting)
    while goes_first and place and not waiting[place - 1].goes_first:
        if waiting[place - 1].overtaken >= MAX_OVERTAKEN:
            break
        place -= 1
    for request in waiting[place:]:
        request.overtaken += 1
    return place


def queued_requests(
    waiting: Sequence[str | None], elapsed_s: Sequence[float], usual: UsualDuration, slots: int
) -> tuple[QueuedRequest, ...]:
    """Return the waiting requests, by their conversations, in order. elapsed_s: how long each running request has run.

    A slot is free when its request has taken as long as usual; one that takes longer may end any moment, and is
    expected to take as long again as it is late.
    """
    if not usual.is_known:
        return tuple(QueuedRequest(conversation, place, None) for place, conversation in enumerate(waiting, 1))
    free = [abs(usual.seconds - elapsed) for elapsed in elapsed_s[:slots]]
    free += [0.0] * (slots - len(free))
    heapq.heapify(free)
    entries = []
    for place, conversation in enumerate(waiting, 1):
        seconds = free[0]
        heapq.heapreplace(free, seconds + usual.seconds)
        entries.append(QueuedRequest(conversation, place, seconds))
    return tuple(entries)
