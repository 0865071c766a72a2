"""The promise of `exact` on real weights: the same words from the same question, whatever the computers do beside it.

llama.cpp's flash attention splits the keys of a single row among its threads as soon as there are more than 256. The
number of threads follows the load of a computer, so without `exact` the same question may be answered otherwise later.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.catalog.shelf import Entry
from app.inference.worker.tokenizer import TextWorker
from backends.contract import Segment, StageConfig, Tokens
from backends.llamacpp.stage import UNCUT_POSITIONS, LlamaStage
from scripts.real_models import MODELS, SMOLLM2
from tests.families import proof
from tests.families.home import Home
from tests.node.pool import TestNode
from tests.real.asking import Json, ask, load
from tests.real.words import PASSAGE, STORY

CHUNK, N_SINGLE, CELLS = 16, 8, 1024
LONG: Json = {"prompt": STORY, "raw": True, "ignore_end": True, "max_tokens": 260}  # beyond the position 256


@pytest.fixture(params=[model.file for model in MODELS])
def entry(request: pytest.FixtureRequest, kept: Path, tmp_path: Path) -> Entry:
    return proof.home(tmp_path).shelf.import_file(kept / request.param)


def scores(config: StageConfig, ids: list[int]) -> list[bytes]:
    """Return the scores after each of some single tokens that follow a prompt longer than 256 tokens."""
    rows = []
    with closing(LlamaStage(config)) as stage:
        for pos in range(0, len(ids) - N_SINGLE, CHUNK):
            part = ids[pos : min(pos + CHUNK, len(ids) - N_SINGLE)]
            stage.forward(Tokens((Segment(0, len(part), pos),), part), [])
        for pos in range(len(ids) - N_SINGLE, len(ids)):
            out = stage.forward(Tokens((Segment(0, 1, pos),), ids[pos : pos + 1]), [0])
            rows.append(bytes(out.rows))
    return rows


async def test_the_number_of_threads_changes_no_bit_of_an_exact_stage(entry: Entry, tmp_path: Path) -> None:
    async with await TextWorker.open(entry.path) as reader:
        ids = list(await reader.tokenize(STORY + 2 * PASSAGE))[: UNCUT_POSITIONS + 40]
    assert len(ids) > UNCUT_POSITIONS + N_SINGLE
    home: Home = proof.home(tmp_path)
    (run,) = proof.runs(entry.model.n_layers, ())
    config = replace(home.config(entry, *run, apart=False), kv_cells=CELLS)
    by_threads = {
        exact: [scores(replace(config, exact=exact, threads=most, begin_threads=0), ids) for most in (4, 6)]
        for exact in (False, True)
    }
    for rows in by_threads.values():
        assert np.isfinite(np.frombuffer(rows[0][0], np.float32)).all()
    four, six = by_threads[True]
    assert four == six
    four, six = by_threads[False]
    assert four != six, "the engine no longer splits keys among threads, so `exact` needs no fixed number"


async def test_the_same_question_is_answered_in_the_same_words_and_also_if_a_lender_is_killed(
    nodes: list[TestNode],
) -> None:
    _, attic, _ = nodes
    async with nodes[0].client() as host:
        loaded = await load(host, SMOLLM2.file, exact=True, number="f16")
        assert loaded["exact"]
        first, again = [await ask(host, **LONG) for _ in range(2)]
        assert again["reused_tokens"] == 0
        assert again["token_ids"] == first["token_ids"]
        victim, struck = await attic.one_worker(), list[int]()

        def strike(n: int) -> None:
            if n >= 240 and not struck:
                struck.append(n)
                victim.kill()

        moved = await ask(host, strike, **LONG)
        assert moved["recoveries"]
        assert moved["token_ids"] == first["token_ids"]
