"""A run of layers on trial: the same step again and again, and the median of its seconds."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from app.core.errors import Busy
from app.core.verification import as_f16
from app.inference.pipeline.step import Run, Step
from app.inference.stages.stage_client import StageClient
from backends.contract import EXPONENT_BYTES, GREEDY, Segment

DEPTH = 512  # positions before the deep steps: the prompt of the benchmark
CHUNKS_S = 2.5  # for the chunks, beyond their least number
LEAST_CHUNKS = 3
LEAST_STEPS, MOST_STEPS = 4, 24
N_PHASES = 7  # of a whole measurement

Report = Callable[[int, int], None]  # phases done, phases in all
_VALUES = (0.5, -1.0, 1.5, -0.25)  # of a hidden state: ordinary numbers
ROWS = 509  # that differ: where layers have experts, rows that were alike would all pick the same
_EXPONENT = bytes(EXPONENT_BYTES)  # of a row in f16


def silent(_done: int, _total: int) -> None:
    """For callers that show no progress."""


@dataclass(slots=True)
class Watched:
    """Stops the trial when somebody needs the machine; says how far it is; knows the time."""

    busy: Callable[[], bool]
    report: Report
    clock: Callable[[], float]
    phases: int = 0

    def phase(self) -> None:
        self.report(self.phases, N_PHASES)
        self.phases += 1

    def look(self) -> None:
        if self.busy():
            raise Busy("speed_busy")


def line(taken: Sequence[float], n_rows: int) -> tuple[float, float]:
    """Seconds of the chunk at position 0, and more for each position, of chunks one after another.

    Medians over all pairs (Theil-Sen): a slow moment of the machine bends no line. Never falling, and never
    so steep that DEPTH positions cost more than the chunk itself: attention is the smaller part.
    """
    slopes = [(later - before) / ((j - i) * n_rows) for (i, before), (j, later) in combinations(enumerate(taken), 2)]
    middle = statistics.median(taken)
    slope = min(max(0.0, statistics.median(slopes or [0.0])), middle / DEPTH)
    first = statistics.median(s - slope * i * n_rows for i, s in enumerate(taken))
    return first, slope


class TrialRun:
    """An open run, asked one step after another."""

    def __init__(self, client: StageClient, run: Run, watched: Watched) -> None:
        self._client, self._run, self._watched = client, run, watched
        self._row = 0  # the number of the next one
        chance = random.Random(run.width)  # noqa: S311  no secret
        self._halves = as_f16(chance.choices(_VALUES, k=run.width + ROWS))[EXPONENT_BYTES:]

    async def repeated(self, n_rows: int, within_s: float, pos: int = 0) -> float:
        """The median of single-token steps of so many sequences, from position `pos` on, in seconds.

        What the steps leave behind is forgotten; `pos` positions stay.
        """
        if self._run.samples:
            for slot in range(n_rows):
                await self._client.begin(slot, 0, GREEDY, ())
        taken = []
        for number in range(1 + MOST_STEPS):
            segments = [Segment(slot, 1, pos + number) for slot in range(n_rows)]
            seconds = await self._step(segments)
            if number:  # the first one builds the graph
                taken.append(seconds)
            if len(taken) >= LEAST_STEPS and sum(taken) > within_s:
                break
        for slot in range(n_rows):
            await self._client.forget(slot, pos)
        return statistics.median(taken)

    async def chunks(self, n_rows: int) -> tuple[float, float, int]:
        """A prompt's chunks as a line: seconds of the first one, how much more for each position before a
        chunk, and the position they reached. They stay."""
        taken: list[float] = []
        while len(taken) * n_rows < DEPTH and (len(taken) < LEAST_CHUNKS or sum(taken) < CHUNKS_S):
            segment = Segment(0, n_rows, len(taken) * n_rows)
            taken.append(await self._step([segment]))
        return *line(taken, n_rows), len(taken) * n_rows

    async def forget(self) -> None:
        """Nothing of the chunks stays."""
        await self._client.forget(0)

    async def _step(self, segments: list[Segment]) -> float:
        self._watched.look()
        n_rows = sum(segment.n_tokens for segment in segments)
        due = segments if self._run.samples else ()
        step = Step.of(segments, due, b"".join(self._next_row() for _ in range(n_rows)))
        began = self._watched.clock()
        await self._client.forward(step)
        return self._watched.clock() - began

    def _next_row(self) -> bytes:
        """A hidden state in f16, another one each time: the same values, begun elsewhere."""
        start = 2 * self._row
        self._row = (self._row + 1) % ROWS
        return _EXPONENT + self._halves[start : start + 2 * self._run.width]
