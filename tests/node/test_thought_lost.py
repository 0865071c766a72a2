"""A machine that is lost while a model thinks: the thought goes on, and the answer behind it is the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from app.client import NodeClient
from testbed import thinker
from tests.node.pool import TestNode, paired

Json = dict[str, Any]
pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]
THOUGHT = tuple(f" so{number}," for number in range(160))
ASK: Json = {"messages": [{"role": "user", "content": "How?"}], "model": "thinker", "guesses": False,
             "max_tokens": 400, "sampling": {"temperature": 0}}  # fmt: skip


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    folder = tmp_path_factory.mktemp("thought")
    with paired(folder, "den", "attic") as nodes:
        path = thinker.thinker(folder / "thinker.gguf", THOUGHT, layers=8, width=256, ffn=4096)
        assert nodes[0].run("import", str(path), "--name", "thinker").returncode == 0
        yield nodes


async def heard(host: NodeClient, lost: TestNode | None = None) -> tuple[list[Json], Json, int]:
    """Each delta, the end, and how many deltas had come when the recovery was told. lost: killed in mid-thought."""
    deltas, done, before = list[Json](), Json(), 0
    async with aclosing(host.stream("POST", "/ask", ASK)) as lines:
        async for line in lines:
            if delta := line.get("delta"):
                deltas.append(delta)
            if "recovery" in line and not before:
                before = len(deltas)
            done = line.get("done") or done
            if lost is not None and len(deltas) == 5:
                lost.process.kill()
    return deltas, done, before


async def test_a_thought_goes_on_without_the_machine_that_was_lost(pool: list[TestNode]) -> None:
    async with pool[0].client() as host:
        await host.work("POST", "/load", {"model": "thinker", "split": [2, 4, 2]})
        _, whole, _ = await heard(host)
        assert (whole["thought"], whole["text"]) == ("".join(THOUGHT).strip(), "Yes, it is.")
        deltas, done, before = await heard(host, pool[1])
    assert done["recoveries"] == 1
    assert 0 < before < len(THOUGHT)
    assert not any(delta["text"] for delta in deltas[:before])  # it was lost while it thought
    for name in ("thought", "text", "token_ids", "thought_tokens", "finish_reason"):
        assert done[name] == whole[name], name
    assert "".join(delta.get("thought", "") for delta in deltas) == whole["thought"]
    assert "".join(delta["text"] for delta in deltas) == whole["text"]
