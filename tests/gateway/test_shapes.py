"""Tests of parsing requests in each API's format, and of refusals before they wait for a model."""

from __future__ import annotations

import io
import json
import time

import aiohttp
import msgspec
import pytest

from app.core.errors import BadInput
from app.gateway.dialects.anthropic_routes import MessagesRequest as Messages
from app.gateway.dialects.openai_requests import ChatRequest as Chat
from app.gateway.dialects.responses_routes import ResponsesRequest as Responses
from tests.gateway.gate_calls import ASK, CHAT
from tests.node.pool import Json

HELLO: Json = {"role": "user", "content": "x"}


def test_blocks_of_a_message_are_each_looked_at_once() -> None:
    """Each text was held against each call: a body of a megabyte held every answer up for three seconds, the largest
    one for minutes."""
    blocks: list[Json] = [{"type": "tool_use"}] * 20_000 + [{"type": "text", "text": "x"}] * 20_000
    message = {"role": "assistant", "content": blocks}
    messages_request = msgspec.convert({"messages": [message, HELLO], "max_tokens": 1}, Messages)
    begun_s = time.process_time()
    with pytest.raises(BadInput):  # the calls have no name
        messages_request.to_api_request(0)
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


SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "null"}}}


@pytest.mark.parametrize(
    "form",
    [
        {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
        {"type": "json_schema", "schema": SCHEMA},
        {"type": "json_object", "schema": SCHEMA},
    ],
)
def test_a_form_is_that_of_its_schema_wherever_that_stands(form: Json) -> None:
    """The last two are llama.cpp's. Any object at all answered the last one."""
    chat_request = msgspec.convert({"messages": [HELLO], "response_format": form}, Chat)
    assert chat_request.to_api_request(0).schema == SCHEMA


@pytest.mark.parametrize("kind", ["web_search", "image_generation", "tool_search"])
def test_tools_that_openai_runs_itself_are_no_tools_here(kind: str) -> None:
    """Codex sends the first with everything, and was refused."""
    own = {"type": "function", "name": "clock", "parameters": {}}
    request = msgspec.convert({"input": "x", "tools": [{"type": kind}, own]}, Responses)
    assert [tool.name for tool in request.to_api_request(0).tools] == ["clock"]
    assert [tool.name for tool in request.own_tools] == ["clock"]
    with pytest.raises(BadInput):
        msgspec.structs.replace(request, tool_choice={"type": kind}).to_api_request(0)
