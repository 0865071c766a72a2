"""The measured speed of stages and requests, and the deadlines derived from it. Times are in monotonic seconds."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.recovery.recovery import Recovered
from app.core.scheduler.routing import Pace, updated_pace

# Factor by which the weight of a slow step decays with each later step: the result is about the 99th percentile.
FORGET_SLOW = 0.995

# A step far slower than the others was delayed by a silent network rather than by computing, which may happen again.
SURE_S = 0.25


@dataclass(frozen=True, slots=True)
class StageFigures:
    """The work of one stage. If requests overlap, each request's figures include the work for the others."""

    name: str
    steps: int = 0
    busy_s: float = 0.0  # computing time; for a lender, it includes both transfers
    wait_s: float = 0.0  # time that micro-batches waited behind others
    bytes_out: int = 0  # sent to the stage
    bytes_in: int = 0

    def since(self, before: StageFigures) -> StageFigures:
        return StageFigures(
            self.name,
            self.steps - before.steps,
            self.busy_s - before.busy_s,
            self.wait_s - before.wait_s,
            self.bytes_out - before.bytes_out,
            self.bytes_in - before.bytes_in,
        )


@dataclass(frozen=True, slots=True)
class RequestFigures:
    """The statistics of one request, measured at the point where its tokens are delivered."""

    prompt_tokens: int
    reused_tokens: int  # prompt tokens found in the KV cache
    answer_tokens: int
    queued_s: float  # time until it got a slot
    ttft_s: float  # time from the request to its first token
    decode_tok_s: float  # after the first token; 0 for answers of one token
    stages: tuple[StageFigures, ...]  # since the last recovery, if there was one
    recoveries: tuple[Recovered, ...] = ()
    place: int = 0  # which of the model's pipelines finished it
    guessed: int = 0  # tokens whose positions were computed before the tokens were known
    guessed_right: int = 0  # how many of those guesses were right
    guess_runs: int = 0  # runs in which these tokens were guessed
    drafted_right: int = 0  # how many of the right guesses were made by a draft model
    guess_took_s: float = 0.0  # of decoding, while the time of a plain step was known
    guess_plain_s: float = 0.0  # what that would have taken without guesses
    restored_s: float = 0.0  # of ttft_s, spent on reading a kept prompt from disk


@dataclass(slots=True)
class StageMeter:
    """A meter of the work of one stage."""

    name: str
    steps: int = 0
    busy_s: float = 0.0
    wait_s: float = 0.0
    bytes_out: int = 0
    bytes_in: int = 0
    slow_decode_s: float = 0.0
    slow_row_s: float = 0.0  # per row of a prefill chunk
    pace: Pace | None = None  # None until measured

    def add(self, busy_s: float, wait_s: float, n_rows: int, prefill: bool) -> None:
        self.steps += 1
        self.busy_s += busy_s
        self.wait_s += wait_s
        self.pace = updated_pace(self.pace, busy_s, n_rows, prefill, wait_s)
        if prefill:
            self.slow_row_s = max(busy_s / n_rows, self.slow_row_s * FORGET_SLOW)
        else:
            before_s = self.slow_decode_s
            most_s = 2 * max(before_s, SURE_S) if before_s else busy_s
            self.slow_decode_s = max(min(busy_s, most_s), before_s * FORGET_SLOW)

    def figures(self) -> StageFigures:
        return StageFigures(self.name, self.steps, self.busy_s, self.wait_s, self.bytes_out, self.bytes_in)


STILL_S = 4.25  # time after which a worker that the system keeps stopped is given up


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The time limits of a stage (SAFETY.md 5)."""

    decode_least_s: float = 2.0
    decode_most_s: float = 10.0
    prefill_least_s: float = 10.0
    first_s: float = 60.0  # the first step may read all weights from a slow disk
    # A lender is asked for its progress this long before a limit. If it does not reply, it is reconnected at the limit.
    ask_s: float = 0.5
    still_s: float = STILL_S
    dead_s: float = 4.75  # no stage is given up sooner, since a machine that was suspended for 4 s may come back

    def of_step(self, meter: StageMeter, n_rows: int, prefill: bool) -> float:
        """Return the time limit for one step, based on the measured speed of its stage."""
        if not meter.steps:
            return self.first_s
        if prefill:
            return max(self.prefill_least_s, 4 * meter.slow_row_s * n_rows)
        if not meter.slow_decode_s:
            return self.decode_most_s
        return min(self.decode_most_s, max(self.decode_least_s, 4 * meter.slow_decode_s))

    def of_worker(self, slowest_s: float, n_rows: int = 0, most_rows: int = 0) -> float:
        """Return the time limit for a step of `n_rows` on a lender, which does not know the contents of steps.

        slowest_s: the duration of the longest step so far.
        most_rows: the number of rows of the largest step so far. A larger step gets proportionally more time.
        """
        if not slowest_s:
            return self.first_s
        return max(self.prefill_least_s, 4 * slowest_s * max(1.0, n_rows / max(1, most_rows)))
