"""The known answer: a new placement is asked twice, and its numbers are compared before anyone uses it.

Engines differ in the last digits from machine to machine, and a tie may fall either way, so log probabilities are
compared within a tolerance instead of words.
"""

from __future__ import annotations

import math
from contextlib import aclosing
from dataclasses import dataclass, replace

from app.core.errors import StageFailed, StageLost
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.scheduler import PipelineConfig
from app.inference.pipeline.sequence import Request, Token
from backends.contract import GREEDY

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)  # the question, as token ids: no person's text
PROOF_TOKENS = 3
NEAREST = 20  # likeliest tokens that are compared
SAME = 0.1  # in natural logs: one placement asked twice, in whatever company the rows travel
KNOWN = 1.0  # another split: numbers between machines may be eight bits wide; nonsense is far beyond

Likely = tuple[tuple[int, float], ...]  # a token and its log probability: the sampled, then the likeliest


@dataclass(frozen=True, slots=True)
class Proof:
    """A placement's answer to the question: for each token what was sampled, and what was likely."""

    steps: tuple[Likely, ...]


async def prove(pipeline: Pipeline, shape: PipelineConfig, name: str, known: Proof | None) -> Proof:
    """Ask twice and compare, also with `known`, the model's answer to the whole question on one machine.

    Raises StageLost if the numbers are not finite, not the same twice, or not the known ones.
    """
    request = Request(
        ids=tuple(prime % shape.n_vocab for prime in PRIMES[: max(1, _room(shape))]),
        sampling=replace(GREEDY, likely=NEAREST),
        max_tokens=PROOF_TOKENS,
        is_usual=False,
    )
    # two conversations: nothing of the first is reused, all stages compute all of it again
    first, second = [await _prove(pipeline, replace(request, conversation=f"proof {n}")) for n in (1, 2)]
    if not (_sound(first) or _sound(second)):
        raise StageFailed("numbers_not_finite")
    if not (_sound(first) and _sound(second) and agree(first, second, SAME)):
        raise StageLost("proof_unsteady", model=name)
    if known is not None and is_asked_whole(shape) and not agree(known, first, KNOWN):
        raise StageLost("proof_differs", model=name)
    return first


def is_asked_whole(shape: PipelineConfig) -> bool:
    """Return whether there was room for the whole question; a shortened one has another answer."""
    return _room(shape) >= len(PRIMES)


def _room(shape: PipelineConfig) -> int:
    return min(shape.context, shape.kv_cells) - PROOF_TOKENS - 1


def agree(proof: Proof, other: Proof, tolerance: float) -> bool:
    """Return whether both found the same tokens likely, as far as they began alike."""
    for mine, theirs in zip(proof.steps, other.steps, strict=False):
        (token, log), likely = mine[0], dict(theirs)
        if token not in likely or abs(likely[token] - log) > tolerance:
            return False
        if token != theirs[0][0]:
            return True  # a tie; what follows continues another text
    return len(proof.steps) == len(other.steps)


def _sound(proof: Proof) -> bool:
    logs = [log for step in proof.steps for _, log in step]
    return bool(logs) and all(proof.steps) and all(math.isfinite(log) for log in logs)


async def _prove(pipeline: Pipeline, request: Request) -> Proof:
    async with aclosing(pipeline.generate(request)) as answer:
        return Proof(tuple([event.likely async for event in answer if isinstance(event, Token)]))
