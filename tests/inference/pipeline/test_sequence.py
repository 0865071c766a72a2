"""Tests of a pipeline's requests, and of replaying an interrupted answer in its original chunks or in large ones."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from app.core.errors import BadInput, Reason
from app.core.recovery.recovery import Loss, Notice, RecentFailures
from app.core.scheduler.schedule import Batch, queue_place
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.scheduler import MicroBatch, PipelineConfig, Scheduler
from app.inference.pipeline.sequence import ALIKE_S, MAX_UNREAD, PAUSE_S, SequenceState, Token, check_request
from app.inference.stages.stage_client import Run, StageClient
from app.inference.stages.stage_connection import open_run, own_stage
from app.inference.worker.worker import Worker
from backends.contract import GREEDY, Layers, Role, Sampling
from testbed import tiny
from tests.backends.cutting import config
from tests.inference.pool import Rebuild, pool, request
from tests.inference.test_recovery import CREATIVE, SLOW, hear, kill, posix


@pytest.mark.parametrize(
    ("tokens", "trained", "code", "most"),
    [
        (2000, 1024, "prompt_beyond_model", 1024),
        (2000, 4096, "prompt_too_long", 1024),
        (5000, 4096, "prompt_beyond_model", 4096),
    ],
)
def test_a_longer_context_is_named_only_where_the_model_can_have_it(
    tokens: int, trained: int, code: str, most: int
) -> None:
    with pytest.raises(BadInput) as raised:
        check_request(request("x" * tokens, 5), 1024, 300, trained)
    assert raised.value.reason == Reason(code, {"tokens": tokens, "context": most})


def test_of_a_prompt_only_what_entered_counts_as_read() -> None:
    sequence = SequenceState(request("x" * 99, 40), 200, cast("Any", None))
    assert sequence.n_read == 0  # it waits for a slot
    sequence.entered = sequence.reused = 30
    assert sequence.n_read == 0
    sequence.entered = 94
    assert sequence.n_read == 64
    sequence.sampled(5, 1.0, tuple)
    sequence.rewind()
    assert sequence.n_read == 69  # once, though it is computed again


@pytest.mark.many(keep=1)
@posix
@pytest.mark.parametrize(("sampling", "n_others"), [(GREEDY, 0), (GREEDY, 1), (CREATIVE, 0)])
async def test_a_lone_greedy_answer_is_replayed_in_the_chunks_in_which_it_came(
    monkeypatch: pytest.MonkeyPatch, sampling: Sampling, n_others: int
) -> None:
    """Otherwise near ties could be decided differently: engines compute single rows differently from several."""
    entered = list[tuple[int, int]]()
    carried = Scheduler._carry

    def carry(work: Scheduler, batch: Batch) -> MicroBatch:
        entered.extend((segment.pos, segment.n_tokens) for segment in batch.segments if segment.slot == 0)
        return carried(work, batch)

    monkeypatch.setattr(Scheduler, "_carry", carry)
    subject = request("x" * 99, 40, sampling=sampling)
    async with pool(1, 6, 1, paths=[SLOW], rebuilds=True) as built:
        rest = [hear(built.pipeline, request("y", 90)) for _ in range(n_others)]
        deeds = {25: kill(built, "lender")}
        heard = await asyncio.gather(hear(built.pipeline, subject, deeds), *rest)
        assert len(heard[0][2].figures.recoveries) == 1
    [again] = [place for place, item in enumerate(entered) if item[0] == 0 and place]
    first, second = entered[:again], entered[again:]
    chunks = [item for item in second if item[1] > 1]
    if n_others or sampling.temperature:
        assert sum(n for _, n in chunks) > 99 + 20
    else:
        assert chunks == [item for item in first if item[1] > 1] == [(0, 64), (64, 35)]
        assert second[2:26] == [(pos, 1) for pos in range(99, 123)]


def test_what_took_long_is_replayed_in_large_chunks_and_pauses_do_not_count() -> None:
    for gap_s, n, is_alike in ((0.1, 99, True), (0.1, 102, False), (600.0, 4, True), (600.0, 6, False)):
        item = SequenceState(request("hello", 500), 600, None)  # type: ignore[arg-type]
        for number in range(n + 1):
            item.sampled(5, 1000.0 + gap_s * number, tuple)
        assert item.timing.generating_s == pytest.approx(n * min(gap_s, PAUSE_S))
        item.rewind(alone=True)
        assert (item.timing.generating_s <= ALIKE_S) == is_alike
        assert item.until == (item.n_prompt if is_alike else item.known)


class Anew(Rebuild):
    """The same run of a real engine, opened once more in the same worker."""

    def __init__(self, worker: Worker, model: Path, form: PipelineConfig, sizes: tiny.Shape) -> None:
        self.worker, self.model, self.form, self.sizes = worker, model, form, sizes
        self.planned, self.planning = [], None
        self.asked = self.stays = False
        self.misfits = self.failing = 0
        self.failures = RecentFailures(time.monotonic)

    async def build(self) -> list[StageClient]:
        run, sizes = Run(os.urandom(16), Role.WHOLE, self.sizes.width), self.sizes
        stage = config(
            self.model, Layers(0, sizes.layers), Role.WHOLE, sizes.width, slots=self.form.slots,
            kv_cells=self.form.kv_cells, batch_rows=self.form.chunk_rows,
        )  # fmt: skip
        await open_run(self.worker, run, self.form.context, stage)
        return [own_stage(self.worker, run, "whole", "host")]


async def test_a_real_engine_goes_on_with_the_same_numbers_bit_for_bit(tmp_path: Path) -> None:
    """The engine's attention gives other numbers for chunks of 64 rows and more than for single rows."""
    sizes = tiny.Shape(layers=2)
    form = PipelineConfig(slots=1, kv_cells=512, context=512, n_vocab=sizes.vocab, chunk_rows=128, checks=False)
    model = tiny.llama(tmp_path / "tiny.gguf", sizes)
    subject = request("x" * 90, 40, sampling=replace(GREEDY, likely=3))
    heard = list[list[Token]]()
    async with await Worker.start("host") as worker:
        anew = Anew(worker, model, form, sizes)
        for lost_at in (0, 5, 20):
            async with Pipeline(await anew.build(), form, anew) as pipeline:
                heard.append([])
                async with aclosing(pipeline.generate(subject)) as stream:
                    async for item in stream:
                        if isinstance(item, Token):
                            heard[-1].append(item)
                        if isinstance(item, Token) and len(heard[-1]) == lost_at:
                            pipeline.break_off(Loss("", "", Reason("stage_lost"), 0.0))
    assert [len(item) for item in heard] == [40, 40, 40]
    assert heard[1] == heard[0]
    assert heard[2] == heard[0]
    assert len(anew.planned) == 2


async def test_a_reader_that_is_behind_by_more_than_a_full_queue_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notices come on top of the tokens: whoever takes one then, and no more, still has a full queue."""
    item = SequenceState(request("hello", 500), 600, None)  # type: ignore[arg-type]
    now = 100.0
    monkeypatch.setattr("app.inference.pipeline.sequence.time.monotonic", lambda: now)
    for token in range(MAX_UNREAD):
        item.put(Token(token))
    item.put(Notice("lost", "attic", Reason("bug")))
    assert item.unread.full_s(101.0) == 1.0
    now = 102.0
    await item.unread.get()
    assert (item.unread.is_full, item.unread.full_s(104.0)) == (True, 2.0)  # since it took the last
    await item.unread.get()
    assert (item.unread.is_full, item.unread.full_s(200.0)) == (False, 0.0)


def test_the_owner_does_not_overtake_an_answer_that_has_begun() -> None:
    """The answer waits again if its pipeline was lost, and somebody is reading it."""
    item = SequenceState(request("hello", 5), 600, None)  # type: ignore[arg-type]
    assert queue_place([item], has_priority=True) == 0
    item.timing.begun_at = 1.0
    assert queue_place([item], has_priority=True) == 1
