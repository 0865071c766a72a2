"""Anthropic's own Python client against a real node with the Guide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic

from tests.gateway.conftest import Open

Json = dict[str, Any]
HELLO = [{"role": "user", "content": "Hello. Who are you?"}]


@pytest.fixture(scope="module")
def client(api: Open) -> Iterator[Anthropic]:
    with Anthropic(api_key=api.key, base_url=api.base, max_retries=0, timeout=40) as item:
        yield item


def asked(**changes: Any) -> Json:
    """Send a request with the newer fields that the client has no parameters for."""
    named = {name: changes.pop(name) for name in ("temperature", "top_k", "top_p") if name in changes}
    rest = {"temperature": 0} | named
    return {"model": "guide", "messages": HELLO, "max_tokens": 12, "extra_body": rest} | changes


def ask(client: Anthropic, **changes: Any) -> Any:
    return client.messages.create(**asked(**changes))


def text(answer: Any) -> str:
    return "".join(block.text for block in answer.content)


@pytest.fixture(scope="module")
def plain(client: Anthropic) -> str:
    return text(ask(client))


CASES: dict[str, tuple[Json, Callable[[Any, str], bool]]] = {
    "greedy twice is the same": ({}, lambda a, p: text(a) == p),
    "its shape": ({}, lambda a, _: (a.type, a.role, a.model, a.id[:4]) == ("message", "assistant", "guide", "msg_")),
    "usage": (
        {}, lambda a, _: a.usage.output_tokens == 12 and a.usage.input_tokens + a.usage.cache_read_input_tokens > 8,
    ),
    "length": ({"max_tokens": 3}, lambda a, _: (a.stop_reason, a.usage.output_tokens) == ("max_tokens", 3)),
    "the end": ({"max_tokens": 300}, lambda a, _: a.stop_reason == "end_turn" and a.stop_sequence is None),
    "a stop": (
        {"stop_sequences": ["zz", " Guide"]},
        lambda a, p: text(a) == p.split(" Guide")[0]
        and (a.stop_reason, a.stop_sequence) == ("stop_sequence", " Guide"),
    ),
    "a system text": ({"system": "Be brief."}, lambda a, _: bool(text(a))),
    "a system in blocks": ({"system": [{"type": "text", "text": "Be brief."}]}, lambda a, _: bool(text(a))),
    "a system message among the others": (
        {"messages": [*HELLO, {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}]},
        lambda a, _: bool(text(a)),
    ),
    "text in blocks": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": HELLO[0]["content"]}]}]},
        lambda a, p: text(a) == p,
    ),
    "an answer that is begun": (
        {"messages": [*HELLO, {"role": "assistant", "content": "I am the Guide, a"}]},
        lambda a, p: ("I am the Guide, a" + text(a)).startswith(p),
    ),
    "a result of a tool, and what was thought": (
        {"messages": [
            *HELLO,
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "x"},
                                              {"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "7"}]},
        ]},
        lambda a, _: a.stop_reason in ("max_tokens", "end_turn"),
    ),
    "top_k and top_p": ({"temperature": 1, "top_k": 5, "top_p": 0.5}, lambda a, _: bool(text(a))),
    "JSON of a schema": (
        {"output_config": {"format": {"type": "json_schema", "schema": {"enum": ["yes", "no"]}}}},
        lambda a, _: text(a) in ('"yes"', '"no"'),
    ),
    "one's own user": ({"metadata": {"user_id": "anna"}}, lambda a, p: text(a) == p),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_message(client: Anthropic, plain: str, case: str) -> None:
    changes, holds = CASES[case]
    answer = ask(client, **changes)
    assert holds(answer, plain), answer


@pytest.mark.parametrize("changes", [{}, {"stop_sequences": ["Guide"]}, {"max_tokens": 200}])
def test_a_stream_says_what_the_whole_says(client: Anthropic, changes: Json) -> None:
    whole = ask(client, **changes)
    with client.messages.stream(**asked(**changes)) as stream:
        kinds = [event.type for event in stream]
        final_message = stream.get_final_message()
    assert text(final_message) == text(whole)
    assert (final_message.stop_reason, final_message.stop_sequence) == (whole.stop_reason, whole.stop_sequence)
    assert final_message.usage.output_tokens == whole.usage.output_tokens
    assert [kinds[0], kinds[-1]] == ["message_start", "message_stop"]


def test_an_answer_has_the_id_of_its_request(client: Anthropic) -> None:
    """The id is where the client looks for it, and an error also contains it."""
    own = {"X-Request-Id": "my-own-id.8"}
    assert ask(client, extra_headers=own)._request_id == "my-own-id.8"
    with client.messages.stream(**asked(extra_headers=own)) as stream:
        assert stream.request_id == "my-own-id.8"


@pytest.mark.parametrize("more", [[], [{"role": "system", "content": "Be brief."}]])
def test_tokens_are_counted_before(client: Anthropic, more: list[Json]) -> None:
    counted = client.messages.count_tokens(model="guide", messages=HELLO + more)
    usage = ask(client, messages=HELLO + more).usage
    assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens
    with pytest.raises(anthropic.NotFoundError, match="no model called other"):
        client.messages.count_tokens(model="other", messages=HELLO)


REFUSED: dict[str, tuple[Json, type[anthropic.APIStatusError], str]] = {
    "no such model": ({"model": "claude-9"}, anthropic.NotFoundError, "not_found_error"),
    "nothing said": ({"messages": []}, anthropic.BadRequestError, "invalid_request_error"),
    "a role that nobody has": (
        {"messages": [{"role": "wizard", "content": "x"}]}, anthropic.BadRequestError, "invalid_request_error",
    ),
    "no length": ({"max_tokens": -2}, anthropic.BadRequestError, "invalid_request_error"),
    "a picture": (
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
        anthropic.BadRequestError, "invalid_request_error",
    ),
    "a call of no tool": (
        {"messages": [*HELLO, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "input": {}}]}]},
        anthropic.BadRequestError, "invalid_request_error",
    ),
    "a tool of another house": (
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        anthropic.BadRequestError, "invalid_request_error",
    ),
    "tools that this model does not know": (
        {"tools": [{"name": "f", "input_schema": {"type": "object"}}]},
        anthropic.BadRequestError, "invalid_request_error",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_the_clients_own_error(client: Anthropic, case: str) -> None:
    changes, kind, word = REFUSED[case]
    with pytest.raises(kind) as refused:
        ask(client, **changes)
    body: Any = refused.value.body
    assert (body["type"], body["error"]["type"]) == ("error", word)
    assert body["error"]["message"].endswith(".")
    assert refused.value.request_id == body["request_id"]


def test_a_wrong_key(api: Open) -> None:
    with (
        Anthropic(api_key="wrong", base_url=api.base, max_retries=0) as wrong,
        pytest.raises(anthropic.AuthenticationError),
    ):
        ask(wrong)
