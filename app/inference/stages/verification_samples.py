"""Samples of what lenders computed, one per run, kept until there is time to compute them again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from app.core.verification import takes_sample
from app.inference.stages.stage_client import Run, Step
from backends.contract import Role
from backends.frames import SEGMENT

MOST_RUNS = 16  # of which a sample is kept, or it is remembered when one was
REST_EACH_S = 30.0  # after a try that came to nothing, for each try so far


@dataclass(frozen=True, slots=True)
class Sample:
    """The first positions of one sequence: they depend on nothing that the run computed before.

    They went through the run alone, so that recomputing them does exactly the same.
    """

    run: Run
    n_rows: int
    given: bytes  # in the number type of the run, as they were on the wire
    answered: bytes


class Samples:
    """The samples of one pipeline. `draw`: a random number from 0 to 1."""

    def __init__(self, draw: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._draw, self._clock = draw, clock
        self._kept: dict[bytes, Sample] = {}
        self._checked_s: dict[bytes, float] = {}
        self._put_off: dict[bytes, tuple[int, float]] = {}  # tries, and when the next one may be

    def look(self, run: Run, step: Step, after: Step) -> None:
        """Look at a step that a run has computed, and keep it if it is its turn."""
        if run.role is not Role.MIDDLE or step.n_segments != 1 or run.pipeline in self._kept:
            return
        _, n_rows, pos = SEGMENT.unpack(step.table)
        if pos:
            return  # every decoded token comes by here
        n_bytes = len(step.rows) + len(after.rows)
        rested_s = self._clock() - self._checked_s.get(run.pipeline, float("-inf"))
        if takes_sample(n_rows, n_bytes, self._draw(), rested_s):
            for gone in _bound(self._kept):
                self._put_off.pop(gone, None)
            self._kept[run.pipeline] = Sample(run, n_rows, bytes(step.rows), bytes(after.rows))

    @property
    def oldest(self) -> Sample | None:
        """Return the sample that has waited longest and is not resting after a try, if any."""
        now_s, never = self._clock(), (0, float("-inf"))
        due = (sample for key, sample in self._kept.items() if self._put_off.get(key, never)[1] <= now_s)
        return next(due, None)

    def put_off(self, sample: Sample) -> int:
        """Put off a sample that could not be recomputed this time; return how often it was tried.

        The others come first.
        """
        pipeline, n_tries = sample.run.pipeline, 1
        if self._kept.pop(pipeline, None) is not None:
            n_tries += self._put_off.get(pipeline, (0, 0.0))[0]
            self._kept[pipeline] = sample
            self._put_off[pipeline] = n_tries, self._clock() + n_tries * REST_EACH_S
        return n_tries

    def forget(self, sample: Sample) -> None:
        """Forget a sample that was recomputed, or no longer can be."""
        pipeline = sample.run.pipeline
        self._kept.pop(pipeline, None)
        self._put_off.pop(pipeline, None)
        self._checked_s.pop(pipeline, None)
        _bound(self._checked_s)
        self._checked_s[pipeline] = self._clock()


def _bound(kept: dict[bytes, Sample] | dict[bytes, float]) -> list[bytes]:
    """Drop the oldest entries, mostly of runs that are gone; return which."""
    gone = list(kept)[: max(0, len(kept) - MOST_RUNS + 1)]
    for pipeline in gone:
        del kept[pipeline]
    return gone
