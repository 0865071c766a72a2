"""200 prompts: the Guide over three nodes with f16 on the wire says what it says whole."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from app.client import NodeClient
from tests.node.pool import paired

pytestmark = pytest.mark.long

PROMPTS = Path(__file__).parents[2] / "guide" / "prompts.txt"
MOST_DIFFERENT = 0.01  # f16 rounds hidden states, and a near tie may fall the other way
AT_ONCE, FEW, CONTEXT = 16, 10, 512


@pytest.mark.timeout(400)
async def test_f16_on_the_wire_changes_next_to_nothing(tmp_path: Path) -> None:
    """Many at once, and a few alone: neither the split nor company changes what is said."""
    lines = PROMPTS.read_text(encoding="utf-8").splitlines()
    prompts = [json.loads(line) for line in lines if line and not line.startswith("#")]
    assert len(set(prompts)) == 200
    with paired(tmp_path, "den", "attic", "kitchen") as nodes:
        async with nodes[0].client() as host:
            await load(host, number="f32", shape="one", measure=False)
            whole = await answers(host, prompts, AT_ONCE)
            assert await answers(host, prompts[:FEW], 1) == whole[:FEW]
            await load(host, number="f16", split=[2, 2, 2, 2])
            split = await answers(host, prompts, AT_ONCE)
            alone = await answers(host, prompts[:FEW], 1)
    assert min(map(len, whole)) > 0
    for results in (split, alone):
        differ = [p for p, a, b in zip(prompts, whole, results, strict=False) if a != b]
        assert len(differ) <= MOST_DIFFERENT * len(results), differ


async def load(host: NodeClient, **how: Any) -> None:
    await host.work("POST", "/load", {"model": "guide", "context": CONTEXT, "users": AT_ONCE, **how})


async def answers(host: NodeClient, prompts: list[str], at_once: int) -> list[list[int]]:
    """The tokens of each answer; so many are made at a time, and as soon as one ends the next begins."""
    room = asyncio.Semaphore(at_once)

    async def answer(prompt: str) -> list[int]:
        async with room:
            order = {"prompt": prompt, "sampling": {"temperature": 0}, "max_tokens": 24}
            return list((await host.work("POST", "/ask", order))["token_ids"])

    return await asyncio.gather(*map(answer, prompts))
