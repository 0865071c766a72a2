"""The routing of requests to replicas. Each request goes to the replica that is expected to finish it first.

A replica computes prompts row by row. It computes each decode step for all its answers together, which takes longer the
more answers there are. A replica does not read the part of a chat that is already in its cache, so a chat returns to
its replica unless waiting there takes longer than reading the chat elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

# assumed length of an answer, in tokens, unless its request allows fewer; the true length is unknown in advance
TYPICAL_OUTPUT = 256
CROWD = 0.25  # the default for the fraction of a step's time that each further answer adds
FEWEST_ROWS = 16  # the minimum rows of a prompt chunk from which the time per row is measured
LEARNED = 0.03  # the weight of each new measurement, small enough that one slow moment is soon forgotten
MOST_CHANGE = 5.0  # limits how far an exceptionally slow step counts, relative to the known time
COLD_STEPS = 8  # the first steps also load weights into memory, so only the fastest of them counts


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a replica."""

    row_s: float  # per row of a prompt
    step_s: float  # for a token of a single answer
    crowd: float = CROWD  # the fraction of step_s that each further answer adds
    seen: int = COLD_STEPS  # number of steps measured

    def round_s(self, answers: float) -> float:
        """Return the seconds for a step that computes one token for each of this many answers."""
        return self.step_s * (1 + self.crowd * max(0.0, answers - 1))


UNKNOWN_PACE = Pace(0.005, 0.05)  # used before the first measurement, so that unmeasured pipelines count as equal


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """The current state of a replica with regard to one request."""

    pace: Pace | None
    is_open: bool  # whether it serves requests: it is neither lost nor being released or rebuilt
    running: int  # answers with a slot
    waiting: int
    slots: int
    rows_ahead: int  # rows of other prompts that have not been computed yet
    held: int = 0  # positions of this request that are already in its cache
    usual_s: float = 1.0  # the usual duration of a request there


def updated_pace(pace: Pace | None, busy_s: float, rows: int, prefill: bool, wait_s: float = 0.0) -> Pace | None:
    """Return the pace after one more step with this many rows.

    wait_s: how long the step waited for other steps. While only the fastest step counts, this wait is included.
    Otherwise, if the results of two steps arrive together, the second step would seem to have taken no time.
    """
    known = pace or UNKNOWN_PACE
    if pace is None or pace.seen < COLD_STEPS:
        busy_s += wait_s
    if (prefill and rows < FEWEST_ROWS) or busy_s <= 0:  # too short for a coarse clock
        return pace
    change = busy_s / (known.row_s * rows if prefill else known.round_s(rows))
    if pace is None:  # until both have been measured, prompts and tokens are assumed to slow down alike
        return Pace(known.row_s * change, known.step_s * change, known.crowd, seen=1)
    if pace.seen < COLD_STEPS:
        change = min(1.0, change)
        return replace(pace, row_s=pace.row_s * change, step_s=pace.step_s * change, seen=pace.seen + 1)
    off = LEARNED * (min(change, MOST_CHANGE) - 1)
    if prefill:
        return replace(pace, row_s=pace.row_s * (1 + off))
    crowd_share = 1 - pace.step_s / pace.round_s(rows)  # the fraction of the time that is due to the further answers
    return replace(pace, step_s=pace.step_s * (1 + off * (1 - crowd_share)), crowd=pace.crowd * (1 + off * crowd_share))


def pace_of(stages: Sequence[Pace | None]) -> Pace | None:
    """Return the pace of a pipeline.

    A token passes through all stages, but the slowest stage alone limits how fast prompts are read.
    """
    known = [stage for stage in stages if stage is not None]
    if not known or len(known) < len(stages):
        return None
    row_s, step_s = max(stage_pace.row_s for stage_pace in known), sum(stage_pace.step_s for stage_pace in known)
    return Pace(row_s, step_s, known[0].crowd)


def wait_s(replica: ReplicaState, prompt: int, output: int) -> float:
    """Return the expected seconds until a replica has answered a request of this length."""
    pace, ahead = replica.pace or UNKNOWN_PACE, replica.running + replica.waiting
    excess = ahead + 1 - replica.slots
    queue_s = max(0, excess) * replica.usual_s / max(1, replica.slots)
    rows = replica.rows_ahead + max(1, prompt - replica.held)
    answers = min(ahead + 1, replica.slots)
    return queue_s + rows * pace.row_s + min(output, TYPICAL_OUTPUT) * pace.round_s(answers)


def route(replicas: Sequence[ReplicaState], prompt: int, output: int) -> int | None:
    """Return the index of the open replica with the shortest wait, or None if no replica is open."""
    waits = [(wait_s(replica, prompt, output), place) for place, replica in enumerate(replicas) if replica.is_open]
    return min(waits)[1] if waits else None
