"""Numbers as JSON may write them: a whole one is one, with a point or with an exponent too."""

from __future__ import annotations

import aiohttp
import pytest

from tests.gateway.gate_calls import ASK, CHAT
from tests.node.pool import Json


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (CHAT, {"n": 1.0, "max_tokens": 3.0, "seed": (1 << 63) - 1}),
        (CHAT, {"seed": -(1 << 63), "top_logprobs": 0.0}),
        ("/v1/messages", {"max_tokens": 3e0, "top_k": 40.0}),
        ("/api/chat", {"options": {"num_predict": 3.0, "top_k": 40.0, "seed": 7.0}, "stream": False}),
    ],
)  # fmt: skip
async def test_a_whole_number_is_one_however_it_is_written(
    http: aiohttp.ClientSession, path: str, change: Json
) -> None:
    async with http.post(path, json=ASK | change) as answer:
        assert answer.status == 200, await answer.text()
