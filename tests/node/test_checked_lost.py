"""A lender that dies while guesses are checked on it: the answer goes on as if nothing had been guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from app.client import NodeClient
from testbed import tiny
from tests.node.pool import TestNode, paired

Json = dict[str, Any]
pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]
N_TOKENS, STUCK = 160, 100
ASK = {"prompt": "How?", "raw": True, "ignore_end": True, "max_tokens": N_TOKENS, "model": "one"}
LOOP = {"temperature": 1.0, "seed": 5, "logit_bias": [[STUCK, 100.0]]}  # one token for ever, so all guesses are right


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    folder = tmp_path_factory.mktemp("checked")
    with paired(folder, "den", "attic") as nodes:
        path = tiny.llama(folder / "one.gguf", layers=8, width=256, ffn=8192, seed=1)
        assert nodes[0].run("import", str(path)).returncode == 0
        yield nodes


async def answered(host: NodeClient, order: Json, at_30: Callable[[], None] = lambda: None) -> Json:
    """Return how an answer ended. at_30: called when 30 tokens have come."""
    n_seen, done = 0, Json()
    async with aclosing(host.stream("POST", "/ask", ASK | order)) as lines:
        async for line in lines:
            n_seen += "delta" in line
            if n_seen == 30:
                at_30()
            done = line.get("done", done)
    return done


async def test_an_answer_outlives_a_lender_that_dies_in_a_check(pool: list[TestNode]) -> None:
    async with pool[0].client() as host:
        await host.work("POST", "/load", {"model": "one", "split": [1, 6, 1]})
        seeded = {"sampling": {"temperature": 1.0, "seed": 7}}
        plain = await answered(host, seeded | {"guesses": False})
        guessed = await answered(host, seeded)
        assert guessed["token_ids"] == plain["token_ids"]
        done = await answered(host, {"sampling": LOOP}, pool[1].process.kill)
    assert done["token_ids"] == [STUCK] * N_TOKENS
    assert done["recoveries"] == 1
    assert done["guessed_right"] > N_TOKENS // 3
