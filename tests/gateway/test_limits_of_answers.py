"""`max_tokens` of -1 and 0, half an emoji, and temperatures, in each of the APIs."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from app.gateway.api_request import NO_LIMIT
from app.gateway.dialects import anthropic_routes, ollama_routes, openai_requests, responses_routes
from tests.gateway.gate_calls import CHAT
from tests.node.pool import Json

CALLED = (  # arguments are JSON within JSON
    r'{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls": '
    r'[{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"a\": \"\\ud83d\"}"}}]}, '
    r'{"role": "tool", "tool_call_id": "a", "content": "\ud83d"}], "max_tokens": 1}'
)
SAID = [{"role": "user", "content": "Hello"}]
ASKS: dict[str, tuple[str, Json, str]] = {  # path, the rest of the body, how the limit is called
    "chat": (CHAT, {"messages": SAID}, "max_tokens"),
    "newer": (CHAT, {"messages": SAID}, "max_completion_tokens"),
    "text": ("/v1/completions", {"prompt": "Hello?"}, "max_tokens"),
    "responses": ("/v1/responses", {"input": "Hello"}, "max_output_tokens"),
    "anthropic": ("/v1/messages", {"messages": SAID}, "max_tokens"),
}
SHAPES: list[tuple[Any, Json, str]] = [
    (openai_requests.ChatRequest, {"messages": [openai_requests.ChatMessage("user", "x")]}, "max_tokens"),
    (openai_requests.ChatRequest, {"messages": [openai_requests.ChatMessage("user", "x")]}, "max_completion_tokens"),
    (openai_requests.CompletionRequest, {"prompt": "x"}, "max_tokens"),
    (responses_routes.ResponsesRequest, {"input": "x"}, "max_output_tokens"),
    (anthropic_routes.MessagesRequest, {"messages": [anthropic_routes.Message("user", "x")]}, "max_tokens"),
]


def tokens_of(result: Json) -> tuple[int, str]:
    """Return the number of tokens in an answer, and why it ended."""
    usage = result["usage"]
    n = usage.get("completion_tokens", usage.get("output_tokens"))
    why = (
        result["choices"][0]["finish_reason"] if "choices" in result else result.get("stop_reason") or result["status"]
    )
    return n, why


@pytest.mark.parametrize("api_name", ASKS)
async def test_0_reads_the_prompt_and_writes_one_token(http: aiohttp.ClientSession, api_name: str) -> None:
    path, rest, name = ASKS[api_name]
    async with http.post(path, json=rest | {name: 0, "temperature": 0}) as answer:
        assert answer.status == 200, await answer.text()
        n, why = tokens_of(await answer.json())
        assert (n, why) == (1, why if why in ("max_tokens", "incomplete") else "length")


@pytest.mark.parametrize("api_name", ASKS)
async def test_minus_1_ends_where_the_model_ends(http: aiohttp.ClientSession, api_name: str) -> None:
    path, rest, name = ASKS[api_name]
    async with http.post(path, json=rest | {name: -1, "temperature": 0}) as answer:
        assert answer.status == 200, await answer.text()
        n, why = tokens_of(await answer.json())
        assert n > 1
        assert why in ("stop", "end_turn", "completed")


@pytest.mark.parametrize("api_name", ASKS)
@pytest.mark.parametrize("wrong", [-2, 1 << 40, 0.5, "x"])
async def test_other_limits_are_refused_by_name(http: aiohttp.ClientSession, api_name: str, wrong: object) -> None:
    path, rest, name = ASKS[api_name]
    async with http.post(path, json=rest | {name: wrong}) as answer:
        assert (answer.status, name in await answer.text()) == (400, True)


def test_a_limit_of_0_is_one_that_was_given() -> None:
    for kind, rest, name in SHAPES:
        assert kind(**rest, **{name: 0}).to_api_request(0).max_tokens == 1
        assert kind(**rest, **{name: -1}).to_api_request(0).max_tokens == NO_LIMIT
    both = openai_requests.ChatRequest(messages=SHAPES[0][1]["messages"], max_completion_tokens=0, max_tokens=50)
    assert both.to_api_request(0).max_tokens == 1
    for value, limit in ((0, 1), (-1, NO_LIMIT), (-2, NO_LIMIT), (7, 7), (None, None)):
        assert (
            ollama_routes.OllamaRequest(options=ollama_routes.Options(num_predict=value)).base_request(0).max_tokens
            == limit
        )


@pytest.mark.parametrize(
    ("path", "rest", "most"),
    [
        (CHAT, {"messages": SAID}, 2), ("/v1/completions", {"prompt": "Hello"}, 2),
        ("/v1/responses", {"input": "Hello"}, 2), ("/v1/messages", {"messages": SAID}, 1),
    ],
)  # fmt: skip
async def test_a_temperature_has_the_range_of_its_api(
    http: aiohttp.ClientSession, path: str, rest: Json, most: int
) -> None:
    limit = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
    for heat, status in ((most, 200), (most + 0.01, 400), (5, 400), (-0.1, 400)):
        async with http.post(path, json=rest | {limit: 1, "temperature": heat}) as answer:
            assert answer.status == status, (heat, await answer.text())
            assert status == 200 or "temperature" in await answer.text()


async def test_ollama_s_temperature_has_no_such_bound(http: aiohttp.ClientSession) -> None:
    for heat, status in ((5, 200), (-1, 400)):
        options = {"num_predict": 1, "temperature": heat}
        async with http.post("/api/chat", json={"messages": SAID, "options": options, "model": "guide"}) as answer:
            assert answer.status == status


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, r'{"messages": [{"role": "user", "content": "cut \ud83d"}], "max_tokens": 1}'),
        ("/v1/completions", r'{"prompt": "cut \ud83d", "max_tokens": 1}'),
        ("/v1/responses", r'{"input": "cut \ud83d", "max_output_tokens": 1}'),
        ("/v1/messages", r'{"messages": [{"role": "user", "content": "cut \ud83d"}], "max_tokens": 1}'),
        ("/v1/messages/count_tokens", r'{"messages": [{"role": "user", "content": "cut \ud83d"}]}'),
        ("/api/chat", r'{"model": "guide", "messages": [{"role": "user", "content": "\ude00"}], "stream": false}'),
        ("/api/generate", r'{"model": "guide", "prompt": "\ud83d", "stream": false}'),
        (CHAT, CALLED),
    ],
)  # fmt: skip
async def test_half_an_emoji_is_a_replacement_character_and_no_error(
    http: aiohttp.ClientSession, path: str, body: str
) -> None:
    headers = {"Content-Type": "application/json"}
    async with http.post(path, data=body.encode(), headers=headers) as answer:
        assert answer.status == 200, await answer.text()
