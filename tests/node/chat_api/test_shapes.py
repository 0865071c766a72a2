"""What is read of a request in an API's shape, and refused before it waits for a model."""

from __future__ import annotations

import io
import json
import time

import aiohttp
import msgspec
import pytest

from app.core.errors import BadInput
from app.node.chat_api.anthropic_shapes import Asked as Messages
from tests.node.chat_api.gate_calls import ASK, CHAT
from tests.node.pool import Json

HELLO: Json = {"role": "user", "content": "x"}


def test_blocks_of_a_message_are_each_looked_at_once() -> None:
    """Each text was held against each call: a body of a megabyte held every answer up for three seconds, the largest
    one for minutes."""
    blocks: list[Json] = [{"type": "tool_use"}] * 20_000 + [{"type": "text", "text": "x"}] * 20_000
    message = {"role": "assistant", "content": blocks}
    asked = msgspec.convert({"messages": [message, HELLO], "max_tokens": 1}, Messages)
    begun_s = time.process_time()
    with pytest.raises(BadInput):  # the calls have no name
        asked.wish(0)
    assert time.process_time() - begun_s < 0.5


async def test_tools_are_no_longer_together_than_a_text_may_be(http: aiohttp.ClientSession) -> None:
    """Each was looked into, value by value: so many held every answer up for a second and a half."""
    parameters = {"type": "object", "x": [[]] * 15_000}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}] * 30
    data = io.BytesIO(json.dumps(ASK | {"tools": tools}).encode())
    headers = {"Content-Type": "application/json"}
    async with http.post(CHAT, data=data, headers=headers) as answer:
        error = (await answer.json())["error"]
    assert (answer.status, error["code"]) == (400, "context_length_exceeded"), error
    assert error["message"].startswith("The text has 1,35"), error
