"""Routing of requests to replicas: each goes to the one that is expected to finish it first. Pure.

A replica computes prompts row by row, and computes each step for all its answers at once, which takes longer the
more there are. It need not read the part of a chat that it already holds, so a chat returns to its replica unless
waiting there takes longer than reading it elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

# assumed tokens of an answer, unless its request allows fewer; the true number is unknown in advance
TYPICAL_OUTPUT = 256
CROWD = 0.25  # the share of a step's time that each further answer adds, if not measured
FEWEST_ROWS = 16  # minimum rows of a prompt chunk for measuring the time per row
LEARNED = 0.03  # weight of each new measurement, so that a single slow moment is soon forgotten
MOST_CHANGE = 5.0  # a step longer than this many times the known time was a hiccup
COLD_STEPS = 8  # the first steps also load weights into memory, so only the quickest of them counts


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a replica."""

    row_s: float  # per row of a prompt
    step_s: float  # for a token of a single answer
    crowd: float = CROWD  # the share of step_s that each further answer adds
    seen: int = COLD_STEPS  # number of steps measured

    def round_s(self, answers: float) -> float:
        """Return the seconds of a step that gives each of this many answers a token."""
        return self.step_s * (1 + self.crowd * max(0.0, answers - 1))


UNKNOWN = Pace(0.005, 0.05)  # used until the first measurement; pipelines with unknown speed count as equal


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """The current state of a replica from the point of view of one request."""

    pace: Pace | None
    is_open: bool  # it is serving: not lost, being released or being rebuilt
    running: int  # answers with a slot
    waiting: int
    slots: int
    rows_ahead: int  # rows of other prompts that have not been computed yet
    held: int = 0  # positions of this request that it already holds
    usual_s: float = 1.0  # the usual duration of a request there


def updated_pace(pace: Pace | None, busy_s: float, rows: int, prefill: bool, wait_s: float = 0.0) -> Pace | None:
    """Return the pace after one more step with this many rows, which was computed after waiting for others.

    While only the fastest step counts, its wait is included: of two answers read at once, the later one would
    otherwise seem to take no time.
    """
    known = pace or UNKNOWN
    if pace is None or pace.seen < COLD_STEPS:
        busy_s += wait_s
    if (prefill and rows < FEWEST_ROWS) or busy_s <= 0:  # too short for a coarse clock to measure
        return pace
    change = busy_s / (known.row_s * rows if prefill else known.round_s(rows))
    if pace is None:  # one is assumed proportional to the other until both have been measured
        return Pace(known.row_s * change, known.step_s * change, known.crowd, seen=1)
    if pace.seen < COLD_STEPS:
        change = min(1.0, change)
        return replace(pace, row_s=pace.row_s * change, step_s=pace.step_s * change, seen=pace.seen + 1)
    off = LEARNED * (min(change, MOST_CHANGE) - 1)
    if prefill:
        return replace(pace, row_s=pace.row_s * (1 + off))
    crowd_share = 1 - pace.step_s / pace.round_s(rows)  # the share of the time due to the further answers
    return replace(pace, step_s=pace.step_s * (1 + off * (1 - crowd_share)), crowd=pace.crowd * (1 + off * crowd_share))


def pace_of(stages: Sequence[Pace | None]) -> Pace | None:
    """Return the pace of a pipeline. A token passes through all its stages, and the slowest limits its prompts."""
    known = [stage for stage in stages if stage is not None]
    if not known or len(known) < len(stages):
        return None
    row_s, step_s = max(stage_pace.row_s for stage_pace in known), sum(stage_pace.step_s for stage_pace in known)
    return Pace(row_s, step_s, known[0].crowd)


def wait_s(standing: ReplicaState, prompt: int, output: int) -> float:
    """Return the expected seconds until a request of this length is answered there."""
    pace, ahead = standing.pace or UNKNOWN, standing.running + standing.waiting
    excess = ahead + 1 - standing.slots
    queue_s = max(0, excess) * standing.usual_s / max(1, standing.slots)
    rows = standing.rows_ahead + max(1, prompt - standing.held)
    answers = min(ahead + 1, standing.slots)
    return queue_s + rows * pace.row_s + min(output, TYPICAL_OUTPUT) * pace.round_s(answers)


def route(standings: Sequence[ReplicaState], prompt: int, output: int) -> int | None:
    """Return the replica with the shortest wait, the first of equals, or None if none is open."""
    waits = [(wait_s(standing, prompt, output), place) for place, standing in enumerate(standings) if standing.is_open]
    return min(waits)[1] if waits else None
