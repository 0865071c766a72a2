"""The real engine under the real driver: what three machines say is what one says."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.inference.pipeline.completion import Completer, Delta, GenerationRequest, Summary
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.scheduler import PipelineConfig
from app.inference.stages.stage_client import Run, StageClient
from app.inference.stages.stage_connection import lent_stage, open_run, own_stage
from app.inference.stages.stage_host import RunOrder, StageHost
from app.inference.worker.tokenizer import TextWorker
from app.inference.worker.worker import Worker
from app.network.peer.frame_channel import MemoryChannel
from backends.contract import GREEDY, NumberFormat, Role
from testbed import tiny
from tests.backends.cutting import config, runs
from tests.inference.guessers import Oracle

SIZES = tiny.Shape(layers=4)
FORM = PipelineConfig(slots=4, kv_cells=1024, context=512, n_vocab=SIZES.vocab)
LIKELY = replace(GREEDY, likely=5)
QUESTIONS = [
    GenerationRequest(prompt="Once upon a time there was a pool of computers. " * 3, max_tokens=24, sampling=LIKELY),
    GenerationRequest(messages=[{"role": "user", "content": "Hello"}], max_tokens=24, sampling=LIKELY),
    GenerationRequest(prompt="Once", max_tokens=24, ignore_end=True, sampling=replace(LIKELY, temperature=2, seed=3)),
]


@dataclass(frozen=True)
class Said:
    """One answer: its tokens, and the logs of how likely they and others were, bit for bit."""

    asked: tuple[int, ...]
    ids: tuple[int, ...]
    likely: list[tuple[tuple[bytes, float], ...]]


async def answers(model: Path, cuts: tuple[int, ...], *, checks: bool = False) -> tuple[list[Said], int]:
    """All questions, asked one after another of this many machines; and how many tokens were guessed."""
    async with AsyncExitStack() as stack:
        group = await stack.enter_async_context(asyncio.TaskGroup())
        host = await stack.enter_async_context(await Worker.start("host"))
        text = await stack.enter_async_context(await TextWorker.open(str(model)))
        stages: list[StageClient] = []
        for layers, role in runs(SIZES.layers, cuts):
            run = Run(os.urandom(16), role, SIZES.width, NumberFormat.F32)
            stage = config(model, layers, role, SIZES.width, slots=4, kv_cells=FORM.kv_cells)
            if role is not Role.MIDDLE:
                await open_run(host, run, FORM.context, stage)
                stages.append(own_stage(host, run, f"{layers}", "host"))
                continue
            lender = await stack.enter_async_context(StageHost(lambda: 1 << 40, "lender"))
            await lender.open(RunOrder(run, FORM.context, stage, 64 << 20, 0, 64 << 20))
            near, far = MemoryChannel.pair()
            group.create_task(lender.serve(run.pipeline, far), name="serve")
            stages.append(lent_stage(near, run, f"lender {layers}"))
        async with Pipeline(stages, replace(FORM, checks=checks)) as pipeline:
            answerer = Completer(text, pipeline)
            every = [await said(answerer, question) for question in QUESTIONS]
            return [item for item, _ in every], sum(n for _, n in every)


async def said(answerer: Completer, question: GenerationRequest) -> tuple[Said, int]:
    likely = []
    async for item in answerer.answer(question):
        if isinstance(item, Delta):
            likely.append(item.likely)
        if isinstance(item, Summary):
            return Said((await answerer._prompt(question)).ids, item.token_ids, likely), item.guessed
    raise AssertionError("an answer without its summary")


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("cuts", [(2,), (1, 3), (1, 2, 3)])
async def test_split_equals_whole(cuts: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens and scores, also where machines compute ahead for guesses that are right or wrong.

    Where several guesses are checked at a time, the scores differ in the last digits.
    """
    model = tiny.llama(tmp_path / "tiny.gguf", SIZES)
    (whole, none), (split, _) = await answers(model, ()), await answers(model, cuts)
    assert whole == split
    assert none == 0
    assert all(len(item.likely) > 5 and item.ids for item in whole[2:])
    if len(cuts) < 3:  # with two lenders guesses follow guesses
        return
    oracle = Oracle(0.6)
    for item in whole:
        oracle.knows(item.asked, item.ids)
    oracle.speaks(monkeypatch)
    ahead, guessed = await answers(model, cuts)
    assert ahead == whole
    assert guessed > 20
    for some in (cuts, ()):
        checked, guessed = await answers(model, some, checks=True)
        assert guessed > 10
        n_same = 0
        for item, known in zip(checked, whole, strict=True):
            pairs = list(zip(item.ids, known.ids, strict=True))
            n = next((n for n, (token, other) in enumerate(pairs) if token != other), len(pairs))
            assert scores(item, n) == pytest.approx(scores(known, n), abs=0.02)
            n_same += n
        assert n_same > sum(len(item.ids) for item in whole) // 3  # a near tie may be decided otherwise


def scores(item: Said, n_tokens: int) -> list[float]:
    return [score for token in item.likely[:n_tokens] for _, score in token]
