"""Checks of computed results: known answers compared before a placement is used, and samples to recompute later.

Engines on different machines differ in the last digits, which can decide a near tie either way. Log probabilities are
therefore compared within a tolerance, instead of comparing texts.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from app.core.errors import StageFailed, StageLost
from app.core.recovery.recovery import Notice
from app.core.verification import takes_sample
from app.inference.pipeline.scheduler import PipelineConfig
from app.inference.pipeline.sequence import Finish, Request, Token
from app.inference.stages.stage_client import Run, Step
from backends.contract import GREEDY, Role
from backends.frames import SEGMENT

PROMPT_IDS = (2, 3, 5, 7, 11, 13, 17, 19)  # prime numbers, so no user's text is involved
ANSWER_TOKENS = 3
N_LIKELIEST = 20  # number of tokens whose probabilities are compared
# In natural logs, between two answers of one placement, whatever else is in the batch and however a prompt was divided.
# 0.12 was seen in SmolLM2 with a stage on a device: where a processor rounds hidden states to 8 bits, a few very large
# values turn a difference in the last digit into a step.
REPEAT_TOLERANCE = 0.4
# Between two placements: hidden states may be sent in eight bits, but wrong results differ far more.
SPLIT_TOLERANCE = 1.0

# pairs of token id and log probability: the sampled token first, then the most likely ones
Logprobs = tuple[tuple[int, float], ...]
Generate = Callable[[Request], AsyncGenerator[Token | Notice | Finish, None]]


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """An answer to the test prompt: the log probabilities at each generated token."""

    steps: tuple[Logprobs, ...]


async def check_known_answer(
    generate: Generate, config: PipelineConfig, name: str, known: KnownAnswer | None
) -> KnownAnswer:
    """Answer the test prompt twice, compare the answers with each other and with `known`, and return the first.

    known: the model's answer to the whole prompt on a single machine. Raises StageLost if the numbers are not finite or
    the answers differ.
    """
    request = Request(
        ids=tuple(prime % config.n_vocab for prime in PROMPT_IDS[: max(1, _prompt_room(config))]),
        sampling=replace(GREEDY, likely=N_LIKELIEST),
        max_tokens=ANSWER_TOKENS,
        is_usual=False,
    )
    # Two conversations, so that the second reuses no KV cache and every stage computes everything again.
    first, second = [await _answer(generate, replace(request, conversation=f"proof {n}")) for n in (1, 2)]
    if not (_is_finite(first) or _is_finite(second)):
        raise StageFailed("numbers_not_finite")
    if not (_is_finite(first) and _is_finite(second) and agree(first, second, REPEAT_TOLERANCE)):
        raise StageLost("proof_unsteady", model=name)
    if known is not None and fits_whole_prompt(config) and not agree(known, first, SPLIT_TOLERANCE):
        raise StageLost("proof_differs", model=name)
    return first


def fits_whole_prompt(config: PipelineConfig) -> bool:
    """Return whether the whole test prompt fits into the context. The known answer applies only to the whole
    prompt.
    """
    return _prompt_room(config) >= len(PROMPT_IDS)


def _prompt_room(config: PipelineConfig) -> int:
    return min(config.context, config.kv_cells) - ANSWER_TOKENS - 1


def agree(answer: KnownAnswer, other: KnownAnswer, tolerance: float) -> bool:
    """Return whether both answers assign similar probabilities up to the first token at which they differ."""
    for mine, theirs in zip(answer.steps, other.steps, strict=False):
        (token, log), logs = mine[0], dict(theirs)
        if token not in logs or abs(logs[token] - log) > tolerance:
            return False
        if token != theirs[0][0]:
            return True  # a near tie: from here on, the answers have different tokens
    return len(answer.steps) == len(other.steps)


def _is_finite(answer: KnownAnswer) -> bool:
    logs = [log for step in answer.steps for _, log in step]
    return bool(logs) and all(answer.steps) and all(math.isfinite(log) for log in logs)


async def _answer(generate: Generate, request: Request) -> KnownAnswer:
    async with aclosing(generate(request)) as events:
        return KnownAnswer(tuple([event.likely async for event in events if isinstance(event, Token)]))


MOST_RUNS = 16  # maximum number of runs with a stored sample or a time of the last check
# Pause before a sample that could not be recomputed is tried again, multiplied by the number of tries so far.
REST_EACH_S = 30.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The input and output of a run for the first positions of a sequence, which depend on no earlier computation.

    They were computed in a separate micro-batch, so recomputing them repeats exactly the same operations.
    """

    run: Run
    n_rows: int
    given: bytes  # input rows in wire format
    answered: bytes


class Samples:
    """The samples taken from one pipeline. `draw` returns a random number from 0 to 1."""

    def __init__(self, draw: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._draw, self._clock = draw, clock
        self._kept: dict[bytes, Sample] = {}
        self._checked_s: dict[bytes, float] = {}
        self._postponed: dict[bytes, tuple[int, float]] = {}  # the number of tries, and when the next one is allowed

    def offer(self, run: Run, step: Step, after: Step) -> None:
        """Store a sample of this step if one is due."""
        if run.role is not Role.MIDDLE or step.n_segments != 1 or run.pipeline in self._kept:
            return
        _, n_rows, pos = SEGMENT.unpack(step.table)
        if pos:
            return  # not the beginning of a sequence; checked early because every decoded token passes through here
        n_bytes = len(step.rows) + len(after.rows)
        rested_s = self._clock() - self._checked_s.get(run.pipeline, float("-inf"))
        if takes_sample(n_rows, n_bytes, self._draw(), rested_s):
            for gone in _bound(self._kept):
                self._postponed.pop(gone, None)
            self._kept[run.pipeline] = Sample(run, n_rows, bytes(step.rows), bytes(after.rows))

    @property
    def oldest(self) -> Sample | None:
        """Return the oldest sample that is due to be recomputed, or None."""
        now_s, never = self._clock(), (0, float("-inf"))
        due = (sample for key, sample in self._kept.items() if self._postponed.get(key, never)[1] <= now_s)
        return next(due, None)

    def postpone(self, sample: Sample) -> int:
        """Move a sample that cannot be recomputed yet behind the others. Return the number of attempts so far."""
        pipeline, n_tries = sample.run.pipeline, 1
        if self._kept.pop(pipeline, None) is not None:
            n_tries += self._postponed.get(pipeline, (0, 0.0))[0]
            self._kept[pipeline] = sample
            self._postponed[pipeline] = n_tries, self._clock() + n_tries * REST_EACH_S
        return n_tries

    def forget(self, sample: Sample) -> None:
        """Remove a sample that was recomputed or can no longer be recomputed."""
        pipeline = sample.run.pipeline
        self._kept.pop(pipeline, None)
        self._postponed.pop(pipeline, None)
        self._checked_s.pop(pipeline, None)
        _bound(self._checked_s)
        self._checked_s[pipeline] = self._clock()


def _bound(kept: dict[bytes, Sample] | dict[bytes, float]) -> list[bytes]:
    """Drop the oldest entries beyond the limit and return their keys. Most of them belong to closed runs."""
    gone = list(kept)[: max(0, len(kept) - MOST_RUNS + 1)]
    for pipeline in gone:
        del kept[pipeline]
    return gone
