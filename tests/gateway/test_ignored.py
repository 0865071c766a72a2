"""Tests that docs/api.md lists the ignored and refused fields of each route correctly. No node."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from app.core.errors import BadInput
from app.gateway.api_request import ApiRequest, Json
from app.gateway.dialects import anthropic_routes, ollama_routes, openai_requests, responses_routes
from app.gateway.dialects.openai_requests import UPSTREAM_FIELDS
from tests.gateway.test_docs import PAGE

ABOUT_THINKING = {  # what is passed on, and obeyed here as well
    "reasoning_effort", "chat_template_kwargs", "reasoning_budget_tokens", "thinking_budget_tokens",
}  # fmt: skip
HELLO: Json = {"messages": [{"role": "user", "content": "Hello"}]}
ROUTES: dict[str, tuple[Any, Json]] = {  # what each reads, and the least that it may be asked
    "/v1/chat/completions": (openai_requests.ChatRequest, HELLO),
    "/v1/completions": (openai_requests.CompletionRequest, {"prompt": "Hello"}),
    "/v1/responses": (responses_routes.ResponsesRequest, {"input": "Hello"}),
    "/v1/messages": (anthropic_routes.MessagesRequest, HELLO),
    "/api/chat": (ollama_routes.OllamaChatRequest, HELLO),
    "/api/generate": (ollama_routes.OllamaGenerateRequest, {"prompt": "Hello"}),
}
VALUES: Json = {  # where any text would not do
    "top_logprobs": 2, "stream_options": {"include_usage": True}, "reasoning": {"effort": "low"}, "keep_alive": "5m",
    "options": {"num_ctx": 9, "num_gpu": 9, "num_thread": 9, "mirostat": 1}, "echo": True, "best_of": 2,
    "background": True, "images": ["x"], "context": [1],
}  # fmt: skip
OTHERS: Json = {  # what stands in the table without being a field of the body
    "custom": {"tools": [{"type": "custom", "name": "x"}]},
    "bash_20250124": {"tools": [{"type": "bash_20250124", "name": "bash"}]},
    **{kind: {"tools": [{"type": kind}]} for kind in ("web_search", "image_generation", "tool_search")},
    "messages.images": {"messages": [{"role": "user", "content": "x", "images": ["x"]}]},
}


def columns() -> dict[str, tuple[list[str], list[str]]]:
    """Return the ignored and the refused field names of each route."""
    page = PAGE.read_text("utf-8")
    section = page.split("## What is ignored, and what is refused")[1].split("\n## ")[0]
    result = {}
    for line in re.findall(r"^\| `/.*", section, re.MULTILINE):
        route, *cells = (cell.strip() for cell in line.strip("| ").split(" |"))
        names = [re.findall(r"`([\w.]+)`", re.sub(r"without `\w+`", "", cell)) for cell in cells]
        result[route.strip("`")] = (names[0], names[1] if len(names) > 1 else [])
    return result


def wish_of(route: str, more: Json) -> ApiRequest:
    kind, least = ROUTES[route]
    api_request: ApiRequest = msgspec.json.decode(msgspec.json.encode(least | more), type=kind).to_api_request(0)
    return replace(api_request, extra_fields={})


def body(name: str) -> Json:
    field = name.split(".", maxsplit=1)[0]
    return OTHERS.get(name) or {field: VALUES.get(field, "x")}


@pytest.mark.parametrize("route", ROUTES)
def test_the_page_says_what_is_ignored_and_what_is_refused(route: str) -> None:
    ignored, refused = columns()[route]
    usual = wish_of(route, {})
    for name in [*ignored, "never_heard_of"]:
        assert wish_of(route, body(name)) == usual, name
    for name in refused:
        with pytest.raises(BadInput):
            wish_of(route, body(name))
    if route == "/v1/chat/completions":
        assert set(UPSTREAM_FIELDS) - ABOUT_THINKING <= set(ignored)


def test_thoughts_of_earlier_answers_are_left_out_and_one_prompt_is_answered() -> None:
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "x"}]}
    api_request = wish_of("/v1/messages", {"messages": [*HELLO["messages"], thought]})
    assert (api_request.messages or ())[-1]["content"] == ""
    with pytest.raises(BadInput, match="api_one_prompt"):
        wish_of("/v1/completions", {"prompt": ["a", "b"]})
