"""A broken embedding model or reranker is told as what it is: no machine is lost, and answers beside it go on."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import aiohttp
import gguf
import pytest

from app.core.errors import AppError
from app.core.reasons import said
from tests import tiny_bert
from tests.broken.files import NAN_F32, broken, retyped
from tests.broken.household import BLAMES, RUN_S, Household, household
from tests.gateway.conftest import Open, opened
from tests.node.pool import Json

CRASHES, INTEGERS = 9, 27  # types that no weights have
ALL_TENSORS_BYTES = 4 << 10  # of the end of a file: within its last tensors
Make = Callable[[Path], None]


def no_numbers(path: Path) -> None:
    """The last values of the file are none."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size - ALL_TENSORS_BYTES)
        file.write(NAN_F32 * (ALL_TENSORS_BYTES // len(NAN_F32)))


def halved(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def as_type(path: Path, kind: int) -> None:
    retyped(path, path, tensor="blk.1.attn_k.weight", kind=kind)


FILES: dict[str, Make] = {
    "numbers that are none": no_numbers,
    "a type that crashes the engine": partial(as_type, kind=CRASHES),
    "weights of integers": partial(as_type, kind=INTEGERS),
    "half a file": halved,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Household]:
    with household(tmp_path_factory.mktemp("vectors")) as made:
        asyncio.run(made.begin())
        yield made


@pytest.fixture(scope="module")
def api(home: Household) -> Open:
    return opened(home.nodes[0])


async def told_of(home: Household, api: Open, *, ranks: bool) -> tuple[int, str]:
    """Return the status and the text for the file at its path, from its import to a vector."""
    async with home.client() as host:
        try:
            order = {"path": str(home.path), "name": "broken"}
            await host.work("POST", "/models", order)
        except AppError as error:
            return 0, said(error)
    body: Json = {"model": "broken", "input": "a small house"}
    if ranks:
        body = {"model": "broken", "query": "what is a shed", "documents": ["rain", "a house"]}
    headers = {"Authorization": f"Bearer {api.key}"}
    async with (
        aiohttp.ClientSession(api.base, headers=headers) as http,
        http.post("/v1/rerank" if ranks else "/v1/embeddings", json=body) as answer,
    ):
        result = await answer.json()
        return answer.status, "" if answer.status == 200 else str(result["error"]["message"])


async def judged(home: Household, api: Open, *, ranks: bool) -> str:
    """Return the report: no machine is blamed, and the good model answers as before."""
    async with asyncio.timeout(RUN_S):
        status, words = await told_of(home, api, ranks=ranks)
    assert not BLAMES.search(words), words
    assert status < 500 or words, status
    assert not await home.good()
    async with home.client() as host:
        machines = (await host.get("/status"))["machines"].values()
        if status:
            await host.post("/unload", {"model": "broken"})
            await host.delete("/models/broken")
    assert [(machine["online"], machine["reason"]) for machine in machines] == [(True, None)] * 2
    return words


@pytest.mark.parametrize("ranks", [False, True])
@pytest.mark.parametrize("label", FILES)
async def test_it_is_told_as_the_file_s_fault(home: Household, api: Open, label: str, ranks: bool) -> None:
    pooling = gguf.PoolingType.RANK if ranks else gguf.PoolingType.MEAN
    FILES[label](tiny_bert.bert(home.path, pooling))
    words = await judged(home, api, ranks=ranks)
    assert re.search("damaged|incomplete|not whole|different model file|import it again", words), words


@pytest.mark.many(keep=2)
@pytest.mark.parametrize("seed", range(10))
async def test_one_that_is_broken_by_chance(home: Household, api: Open, tmp_path: Path, seed: int) -> None:
    ranks = bool(seed % 2)
    pooling = gguf.PoolingType.RANK if ranks else gguf.PoolingType.MEAN
    broken(tiny_bert.bert(tmp_path / "whole.gguf", pooling), home.path, seed)
    await judged(home, api, ranks=ranks)
