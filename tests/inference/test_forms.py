"""An answer whose form is too heavy ends by itself: others beside it go on, from the same worker."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from app.core.json_schema.json_grammar import json_grammar
from app.core.reasons import said
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.scheduler import PipelineConfig
from app.inference.pipeline.sequence import Request
from app.inference.stages.stage_client import Run
from app.inference.stages.stage_connection import open_run, own_stage
from app.inference.worker.worker import Worker
from backends import grammar_process
from backends.contract import GREEDY, NumberFormat
from testbed import tiny
from tests.backends.cutting import config, runs
from tests.inference.pool import answer
from tests.inference.test_final_failures import hear

SIZES = tiny.Shape(layers=4)
FORM = PipelineConfig(slots=4, kv_cells=1024, context=256, n_vocab=SIZES.vocab)
A_LIST = {"type": "array", "items": {"$ref": "#/$defs/a"}}
OF_ITSELF = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [A_LIST, {**A_LIST, "minItems": 1}]}}}
OPENS = tiny.FIRST_BYTE + ord("[")
FULL_STOP = tiny.FIRST_BYTE + ord(".")
PROMPT = tuple(range(40, 60))
PLAIN = Request(PROMPT, GREEDY, 60)
# It writes `[` wherever it may: each one doubles the ways on that are to be remembered.
POISON = replace(
    PLAIN, sampling=replace(GREEDY, grammar=json_grammar(OF_ITSELF), logit_bias=((OPENS, 100.0),)), max_tokens=200
)
DIGITS = replace(PLAIN, sampling=replace(GREEDY, grammar='root ::= [0-9]{30} "."'))
within_reach = pytest.mark.skipif(not hasattr(os, "fork"), reason="the node's deadline ends it there")


@asynccontextmanager
async def serving(model: Path, cuts: tuple[int, ...]) -> AsyncIterator[tuple[Pipeline, Worker]]:
    """The first and the last run in one worker that may read the model, and else nothing."""
    async with AsyncExitStack() as stack:
        host = await stack.enter_async_context(await Worker.start("host", reads=[model.parent], forms=True))
        stages = []
        for layers, role in runs(SIZES.layers, cuts):
            run = Run(os.urandom(16), role, SIZES.width, NumberFormat.F32)
            stage = config(model, layers, role, SIZES.width, slots=4, kv_cells=FORM.kv_cells)
            await open_run(host, run, FORM.context, stage)
            stages.append(own_stage(host, run, f"{layers}", "host"))
        async with Pipeline(stages, FORM) as pipeline:
            yield pipeline, host


@within_reach
@pytest.mark.many(keep=1)
@pytest.mark.parametrize("cuts", [(), (2,)])
async def test_a_form_that_grows_without_bound_ends_its_own_answer_alone(cuts: tuple[int, ...], tmp_path: Path) -> None:
    model = tiny.llama(tmp_path / "tiny.gguf", SIZES)
    async with serving(model, cuts) as (pipeline, host):
        plain, _ = await answer(pipeline, PLAIN)
        digits, _ = await answer(pipeline, DIGITS)
        held = psutil.Process(host.pid).memory_info().rss
        began = time.monotonic()
        coroutines = [hear(pipeline, request) for request in (POISON, PLAIN, DIGITS)]
        (_, notices, error), *rest = await asyncio.gather(*coroutines)
        assert time.monotonic() - began < 60
        assert error is not None
        assert error.reason.code == "form_too_heavy"
        assert "simpler form" in said(error)
        assert not notices
        for ids, other, fine in rest:  # not a token is computed again for them
            assert (other, fine) == ([], None)
            assert len(ids) == 60 or ids[-1] == FULL_STOP
        assert host.died is None
        assert psutil.Process(host.pid).memory_info().rss - held < 64 << 20
        for process in psutil.Process(host.pid).children(recursive=True):  # each bounded by itself
            assert process.memory_info().rss < 512 << 20
        for asked_again, alone in ((PLAIN, plain), (DIGITS, digits)):
            assert (await answer(pipeline, asked_again))[0] == alone


@within_reach
async def test_what_follows_forms_ends_with_its_worker(tmp_path: Path) -> None:
    model = tiny.llama(tmp_path / "tiny.gguf", SIZES)
    async with serving(model, ()) as (pipeline, host):
        await answer(pipeline, DIGITS)
        started = psutil.Process(host.pid).children(recursive=True)
        assert len(started) == 2  # what starts them, and one
    _, alive = psutil.wait_procs(started, timeout=20)
    assert not alive


@within_reach
async def test_what_follows_forms_ends_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    model = tiny.llama(tmp_path / "tiny.gguf", SIZES)
    async with serving(model, ()) as (pipeline, host):
        await answer(pipeline, DIGITS)
        started = psutil.Process(host.pid).children(recursive=True)
        psutil.Process(host.pid).kill()
        await host.wait_dead()
        _, alive = await asyncio.to_thread(psutil.wait_procs, started, timeout=20)
        assert not alive


def test_what_follows_a_form_cannot_make_its_worker_read_without_end() -> None:
    ours, its = socket.socketpair()
    with ours, its:
        its.sendall(grammar_process.HEAD.pack(1, 0xFFFF_FFFF))
        with pytest.raises(OSError, match="the most"):
            grammar_process.receive(ours)
