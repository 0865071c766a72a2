"""Helpers for tests of the Chat API's checks: a request, its bytes, and whether the node is idle."""

from __future__ import annotations

import asyncio

import aiohttp

from tests.gateway.conftest import Open
from tests.node.pool import Json

CHAT = "/v1/chat/completions"
ASK: Json = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2, "temperature": 0}
LONG: Json = {  # to /v1/completions: seconds, as its bias is against the token that ends an answer
    "model": "guide", "prompt": "Hello", "max_tokens": 4000, "n": 4, "stream": True, "logit_bias": {"2": -100}
}  # fmt: skip


async def status_of(
    base: str, method: str, path: str, headers: dict[str, str], data: object = None
) -> tuple[int, Json]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, base + path, headers=headers, data=data, allow_redirects=False) as answer,
    ):
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
        assert answer.headers["X-Request-Id"]
        return answer.status, await answer.json(content_type=None)


def head(api: Open, *lines: str) -> bytes:
    head = [f"POST {CHAT} HTTP/1.1", f"Host: 127.0.0.1:{api.port}", f"Authorization: Bearer {api.key}",
            "Content-Type: application/json", *lines, "", ""]  # fmt: skip
    return "\r\n".join(head).encode()


async def control(api: Open, method: str, path: str) -> Json:
    return await asyncio.to_thread(api.control, method, path)


async def rests(api: Open) -> None:
    """Nothing is answered any more, soon."""
    await api.node.until_nobody()
