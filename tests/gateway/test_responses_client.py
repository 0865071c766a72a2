"""OpenAI's client and its responses, against a real node with the Guide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from app.gateway.dialects.responses_routes import ResponsesRequest
from tests.gateway.conftest import Open

Json = dict[str, Any]
ASK: Json = {"model": "guide", "input": "Hello. Who are you?", "temperature": 0, "max_output_tokens": 12}


@pytest.fixture(scope="module")
def client(api: Open) -> Iterator[OpenAI]:
    with OpenAI(api_key=api.key, base_url=f"{api.base}/v1", max_retries=0, timeout=40) as open_ai:
        yield open_ai


@pytest.fixture(scope="module")
def plain(client: OpenAI) -> str:
    return str(client.responses.create(**ASK).output_text)


PARTS = [{"role": "user", "content": [{"type": "input_text", "text": ASK["input"]}]}]
YES = {"format": {"type": "json_schema", "name": "x", "schema": {"enum": ["yes", "no"]}}}
CASES: dict[str, tuple[Json, Callable[[Any, str], bool]]] = {
    "greedy twice is the same": ({}, lambda a, p: a.output_text == p),
    "its shape": ({}, lambda a, _: (a.object, a.id[:5], a.model, a.error) == ("response", "resp_", "guide", None)),
    "cut short": (
        {"max_output_tokens": 2},
        lambda a, _: (a.status, a.incomplete_details.reason) == ("incomplete", "max_output_tokens"),
    ),
    "to its end": ({"max_output_tokens": 300}, lambda a, _: a.status == "completed"),
    "usage": ({}, lambda a, _: a.usage.output_tokens == 12 and a.usage.total_tokens == a.usage.input_tokens + 12),
    "instructions": ({"instructions": "Be brief."}, lambda a, _: a.instructions == "Be brief."),
    "text in parts": ({"input": PARTS}, lambda a, p: a.output_text == p),
    "turns": (
        {"input": [*PARTS, {"type": "message", "role": "assistant",
                            "content": [{"type": "output_text", "text": "I am.", "annotations": []}]}, *PARTS]},
        lambda a, _: a.usage.input_tokens > 20,
    ),
    "what a tool said": (
        {"input": [*PARTS, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                   {"type": "function_call_output", "call_id": "c", "output": "7"}]},
        lambda a, _: a.status in ("completed", "incomplete"),
    ),
    "metadata": ({"metadata": {"of": "anna"}}, lambda a, _: a.metadata == {"of": "anna"}),
    "JSON of a schema": ({"text": YES}, lambda a, _: a.output_text in ('"yes"', '"no"')),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_response(client: OpenAI, plain: str, case: str) -> None:
    changes, holds = CASES[case]
    answer = client.responses.create(**ASK | changes)
    assert holds(answer, plain), answer


@pytest.mark.parametrize("tokens", [5, 300])
def test_a_stream_says_what_the_whole_says(client: OpenAI, tokens: int) -> None:
    whole = client.responses.create(**ASK | {"max_output_tokens": tokens})
    events = list(client.responses.create(**ASK | {"max_output_tokens": tokens}, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:4]] == [
        "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
    ]  # fmt: skip
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole.output_text == events[-1].response.output_text
    assert events[-1].response.status == whole.status
    with client.responses.stream(**ASK | {"max_output_tokens": 300}) as stream:  # the client's own gathering agrees
        stream.until_done()
        assert stream.get_final_response().output_text


@pytest.mark.parametrize("case", ["instructions", "text in parts", "turns"])
def test_tokens_are_counted_before(client: OpenAI, case: str) -> None:
    changes, _ = CASES[case]
    request = {"model": "guide", "input": ASK["input"]} | changes
    counted = client.responses.input_tokens.count(**request)
    assert counted.input_tokens == client.responses.create(**ASK | changes).usage.input_tokens
    with pytest.raises(openai.NotFoundError, match="no model called other"):
        client.responses.input_tokens.count(model="other", input="x")


def test_calls_of_one_turn_are_one_message() -> None:
    calls = [{"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"} for name in "ab"]
    outputs = [{"type": "function_call_output", "call_id": name, "output": "7"} for name in "ab"]
    messages = ResponsesRequest(input=[*PARTS, *calls, *outputs, *calls[:1]]).to_api_request(0).messages
    assert messages is not None
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [call["id"] for call in messages[1]["tool_calls"]] == ["a", "b"]


def test_what_a_turn_says_and_calls_is_one_message() -> None:
    """Templates of Mistral's refuse two answers in a row."""
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    said = {"role": "assistant", "content": "I look."}
    output = {"type": "function_call_output", "call_id": "a", "output": "7"}
    messages = ResponsesRequest(input=[*PARTS, said, call, output, said]).to_api_request(0).messages
    assert messages is not None
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[1]["content"] == "I look."
    assert [tool_call["id"] for tool_call in messages[1]["tool_calls"]] == ["a"]
    assert "tool_calls" not in messages[3]


@pytest.mark.parametrize(
    "changes",
    [{"previous_response_id": "resp_1"}, {"input": []}, {"background": True}, {"input": [{"type": "input_image"}]},
     {"tools": [{"type": "custom", "name": "f"}]}, {"tool_choice": "sometimes"},
     {"text": {"format": {"type": "yaml"}}}],
)  # fmt: skip
def test_what_is_not_supported_is_said(client: OpenAI, changes: Json) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(**ASK | changes)
    assert str(refused.value.body["message"]).endswith(".")
