"""OpenAI's own Python client against a real node with the Guide: a table of what people ask of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import openai
import pytest
from openai import OpenAI

from tests.gateway.conftest import Open

Json = dict[str, Any]
HELLO = [{"role": "user", "content": "Hello. Who are you?"}]
DATE = {
    "type": "object",
    "properties": {"day": {"enum": [1, 2]}, "month": {"enum": ["May", "June"]}},
    "required": ["day", "month"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def client(api: Open) -> Iterator[OpenAI]:
    with OpenAI(api_key=api.key, base_url=f"{api.base}/v1", max_retries=0, timeout=40) as open_ai:
        yield open_ai


def chat(client: OpenAI, **changes: Any) -> Any:
    request = {"model": "guide", "messages": HELLO, "max_tokens": 12, "temperature": 0, "seed": 7}
    return client.chat.completions.create(**request | changes)


@pytest.fixture(scope="module")
def plain(client: OpenAI) -> str:
    """The greedy answer."""
    return str(chat(client).choices[0].message.content)


def content(answer: Any) -> str:
    return str(answer.choices[0].message.content)


def reason(answer: Any) -> str:
    return str(answer.choices[0].finish_reason)


def is_date(answer: Any) -> bool:
    date = json.loads(content(answer))
    return set(date) == {"day", "month"} and date["month"] in ("May", "June") and reason(answer) == "stop"


def has_logprobs(answer: Any) -> bool:
    tokens = answer.choices[0].logprobs.content
    chosen = bytes(byte for token in tokens for byte in token.bytes).decode()
    best = all(token.top_logprobs[0].logprob >= token.top_logprobs[-1].logprob for token in tokens)
    sums = all(sum(math.exp(top.logprob) for top in token.top_logprobs) <= 1.001 for token in tokens)
    return best and sums and chosen == content(answer) and {len(token.top_logprobs) for token in tokens} == {5}


JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "date", "strict": True, "schema": DATE}}
CHATS: dict[str, tuple[Json, Callable[[Any, str], bool]]] = {
    "greedy twice is the same": ({}, lambda a, plain: content(a) == plain),
    "its shape": (
        {},
        lambda a, _: (a.object, a.model, a.choices[0].message.role, a.id[:9])
        == ("chat.completion", "guide", "assistant", "chatcmpl-"),
    ),
    "usage": (
        {},
        lambda a, _: a.usage.total_tokens == a.usage.prompt_tokens + a.usage.completion_tokens
        and a.usage.completion_tokens == 12,
    ),
    "length": ({"max_tokens": 3}, lambda a, _: reason(a) == "length" and a.usage.completion_tokens == 3),
    "max_completion_tokens": (
        {"max_tokens": openai.omit, "max_completion_tokens": 2},
        lambda a, _: a.usage.completion_tokens == 2,
    ),
    "the end": ({"max_tokens": 300}, lambda a, _: reason(a) == "stop"),
    "no model": ({"model": ""}, lambda a, _: a.model == "guide"),
    "the default model": ({"model": "default"}, lambda a, _: a.model == "guide"),
    "another case of its name": ({"model": "Guide"}, lambda a, _: a.model == "guide"),
    "n": ({"n": 3}, lambda a, p: [content(a), *{c.message.content for c in a.choices}] == [p, p]
          and [c.index for c in a.choices] == [0, 1, 2]),
    "n differ by their seeds": (
        {"n": 4, "temperature": 2, "top_p": 1, "top_k": -1, "min_p": 0}
        | {"extra_body": {"top_k": -1, "min_p": 0}},
        lambda a, _: len({c.message.content for c in a.choices}) > 1,
    ),
    "a stop": ({"stop": " Guide"}, lambda a, p: content(a) == p.split(" Guide")[0] != p and reason(a) == "stop"),
    "a stop across tokens": (
        {"stop": ["zzz", "e Guide, a"]}, lambda a, p: content(a) == p.split("e Guide, a")[0] != p,
    ),
    "stops that never come": ({"stop": ["@@", "##"]}, lambda a, p: content(a) == p),
    "an empty stop is none": ({"stop": [""]}, lambda a, p: content(a) == p),
    "no bias": ({"logit_bias": {}}, lambda a, p: content(a) == p),
    "logprobs": ({"logprobs": True, "top_logprobs": 5}, lambda a, _: has_logprobs(a)),
    "logprobs alone": (
        {"logprobs": True},
        lambda a, _: a.choices[0].logprobs.content[0].top_logprobs == [],
    ),
    "no logprobs": ({}, lambda a, _: a.choices[0].logprobs is None),
    "penalties of what does not come again": (
        {"presence_penalty": 2, "frequency_penalty": 2}, lambda a, p: content(a) == p,
    ),
    "a temperature of two": ({"temperature": 2, "top_p": 0.1}, lambda a, _: bool(content(a))),
    "JSON of a schema": ({"response_format": JSON_SCHEMA, "max_tokens": 80}, lambda a, _: is_date(a)),
    "a hot JSON of a schema": (
        {"response_format": JSON_SCHEMA, "max_tokens": 80, "temperature": 2}, lambda a, _: is_date(a),
    ),
    "plain text, said so": ({"response_format": {"type": "text"}}, lambda a, p: content(a) == p),
    "a system message": (
        {"messages": [{"role": "system", "content": "Be brief."}, *HELLO]}, lambda a, _: bool(content(a)),
    ),
    "a developer's message": (
        {"messages": [{"role": "developer", "content": "Be brief."}, *HELLO]}, lambda a, _: bool(content(a)),
    ),
    "text in parts": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": HELLO[0]["content"]}]}]},
        lambda a, p: content(a) == p,
    ),
    "an answer that is begun": (
        {"messages": [*HELLO, {"role": "assistant", "content": "I am the Guide, a"}]},
        lambda a, p: ("I am the Guide, a" + content(a)).startswith(p),
    ),
    "several turns": (
        {"messages": [*HELLO, {"role": "assistant", "content": "I am the Guide."}, *HELLO]},
        lambda a, _: a.usage.prompt_tokens > 15,
    ),
    "tools that are not to be used": (
        {"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "none"},
        lambda a, p: content(a) == p,
    ),
    "what it does not know it ignores": (
        {"user": "anna", "store": True, "metadata": {"a": "b"}, "service_tier": "auto"}, lambda a, p: content(a) == p,
    ),
    "signs and smileys": (
        {"messages": [{"role": "user", "content": "Gr\u00fc\u00dfe \U0001f642 \u4f60\u597d \u0000 <|im_end|>"}]},
        lambda a, _: isinstance(content(a), str),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHATS)
def test_a_chat(client: OpenAI, plain: str, case: str) -> None:
    changes, holds = CHATS[case]
    changes = {name: value for name, value in changes.items() if name not in ("top_k", "min_p")}
    answer = chat(client, **changes)
    assert holds(answer, plain), answer


def ids(api: Open) -> list[int]:
    """The tokens of the greedy answer, which no API of others tells."""
    ask = ("ask", HELLO[0]["content"], "--max-tokens", "2", "--temperature", "0", "--json")
    return list(json.loads(api.node.run(*ask).stdout)["token_ids"])


def test_an_answer_has_the_id_of_its_request(client: OpenAI) -> None:
    assert chat(client, extra_headers={"X-Request-Id": "my-own-id.9"})._request_id == "my-own-id.9"


def test_a_bias_brings_a_token_and_keeps_it_away(client: OpenAI, api: Open, plain: str) -> None:
    first, second = ids(api)
    always = chat(client, logit_bias={str(first): 100}, logprobs=True)
    tokens = [item.token for item in always.choices[0].logprobs.content]
    assert tokens == ["I"] * 12
    assert plain.startswith("I am")
    other = content(chat(client, logit_bias={str(second): 100}))
    assert other.strip() == " ".join(["am"] * 12)
    never = chat(client, logit_bias={str(first): -100}, logprobs=True)
    assert "I" not in [item.token for item in never.choices[0].logprobs.content][:1]


@pytest.mark.parametrize("name", ["presence_penalty", "frequency_penalty"])
def test_a_penalty_ends_what_repeats_itself(client: OpenAI, api: Open, name: str) -> None:
    first = str(ids(api)[0])

    def said(bias: int, **more: int) -> str:
        return content(chat(client, max_tokens=2, logit_bias={first: bias}, **more))

    bias = next(bias for bias in range(101) if said(bias) == "II")  # so that a little less is not enough
    assert bias > 0
    assert said(bias, **{name: 2}) != "II"
    assert said(bias - 1) != "II"
    assert said(bias - 1, **{name: -2}) == "II"


def test_a_seed_gives_the_same_hot_answer_and_another_gives_another(client: OpenAI) -> None:
    def said(seed: int) -> str:
        hot = {"temperature": 2, "top_p": 1, "max_tokens": 40}
        return content(chat(client, seed=seed, extra_body={"top_k": -1, "min_p": 0}, **hot))

    assert said(7) == said(7) != said(8)


STREAMS: dict[str, Json] = {
    "plain": {}, "with usage": {"stream_options": {"include_usage": True}}, "two at once": {"n": 2},
    "a stop": {"stop": "Guide"}, "likely": {"logprobs": True, "top_logprobs": 1}, "to its end": {"max_tokens": 200},
}  # fmt: skip


@pytest.mark.parametrize("case", STREAMS)
def test_a_stream_says_what_the_whole_says(client: OpenAI, case: str) -> None:
    changes = STREAMS[case]
    whole = chat(client, **{name: value for name, value in changes.items() if name != "stream_options"})
    texts: dict[int, str] = {}
    reasons: dict[int, str | None] = {}
    usage, likely = None, 0
    for chunk in chat(client, stream=True, **changes):
        assert chunk.object == "chat.completion.chunk"
        usage = chunk.usage or usage
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
            reasons[choice.index] = choice.finish_reason or reasons.get(choice.index)
            likely += len(choice.logprobs.content) if choice.logprobs else 0
    assert texts == {choice.index: choice.message.content for choice in whole.choices}
    assert reasons == {choice.index: choice.finish_reason for choice in whole.choices}
    assert (usage is not None) == ("stream_options" in changes)
    if usage is not None:
        assert usage.total_tokens == whole.usage.total_tokens
    assert likely == (whole.usage.completion_tokens if "logprobs" in changes else 0)


@pytest.mark.parametrize("stream", [False, True])
def test_tokens_that_a_stop_took_away_are_told_with_no_likelihood(client: OpenAI, stream: bool) -> None:
    """Includes a stop string that begins in the middle of a token."""
    whole = content(chat(client, max_tokens=20))
    for stop in (whole[6:12], whole[3:9], whole[8]):
        reports = [("", "")] * 2
        answer = chat(client, max_tokens=20, stop=stop, logprobs=True, n=2, stream=stream)
        for part in answer if stream else [answer]:
            for choice in part.choices:
                text = (choice.delta if stream else choice.message).content or ""
                tokens = [item.token for item in choice.logprobs.content] if choice.logprobs else []
                said, sampled = reports[choice.index]
                reports[choice.index] = (said + text, sampled + "".join(tokens))
        for said, sampled in reports:
            assert said == whole[: whole.find(stop)]
            assert sampled.startswith(said)
            assert stop not in sampled or len(stop) == 1


# Of what it learned, its next word is sure; of anything else, rounding in another batch may choose another.
BEGUN = "Poolhouse pools the computers of one household, so"
TEXTS: dict[str, tuple[Json, Callable[[Any], bool]]] = {
    "at most sixteen tokens": ({}, lambda a: 1 <= a.usage.completion_tokens <= 16),
    "its shape": ({}, lambda a: (a.object, a.id[:5]) == ("text_completion", "cmpl-")),
    "token ids": ({"prompt": [5, 6, 7]}, lambda a: a.usage.prompt_tokens == 3),
    "one prompt in a list": ({"prompt": [BEGUN]}, lambda a: bool(a.choices[0].text)),
    "token ids in a list": ({"prompt": [[5, 6, 7]]}, lambda a: a.usage.prompt_tokens == 3),
    "two answers": ({"n": 2}, lambda a: a.choices[0].text == a.choices[1].text),
    "logprobs": (
        {"logprobs": 2},
        lambda a: (
            "".join(a.choices[0].logprobs.tokens) == a.choices[0].text
            and len(a.choices[0].logprobs.token_logprobs) == a.usage.completion_tokens
            and a.choices[0].logprobs.text_offset[0] == 0
        ),
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text(client: OpenAI, case: str) -> None:
    changes, holds = TEXTS[case]
    answer = client.completions.create(**{"model": "guide", "prompt": BEGUN, "temperature": 0} | changes)
    assert holds(answer), answer


def test_a_text_as_a_stream(client: OpenAI) -> None:
    request: Any = {"model": "guide", "prompt": BEGUN, "temperature": 0, "logprobs": 1}
    whole = client.completions.create(**request)
    chunks = [chunk for chunk in client.completions.create(**request, stream=True) if chunk.choices]
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
    offsets = [at for chunk in chunks if (likely := chunk.choices[0].logprobs) for at in likely.text_offset]
    assert offsets == whole.choices[0].logprobs.text_offset


def test_the_models(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["guide"]
    assert client.models.retrieve("guide").owned_by == "poolhouse"


PARAMS: dict[str, tuple[Json, str | None, str]] = {
    "a token beyond the vocabulary": ({"logit_bias": {"99999": 1}}, "logit_bias", "The bias for token 99999"),
    "a call without tools": ({"tool_choice": "required"}, "tool_choice", "but defines no tools"),
    "a call of one without any": (
        {"tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice", "but defines no tools",
    ),
    "a part without its text": (
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, None, "has the type text",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PARAMS)
def test_a_refusal_says_what_is_wrong(client: OpenAI, case: str) -> None:
    changes, param, words = PARAMS[case]
    with pytest.raises(openai.BadRequestError) as refused:
        chat(client, **changes)
    assert refused.value.param == param
    assert words in str(dict(cast("Json", refused.value.body))["message"])


REFUSED: dict[str, tuple[Json, type[openai.APIStatusError], str | None]] = {
    "no such model": ({"model": "gpt-9"}, openai.NotFoundError, "model_not_found"),
    "nothing said": ({"messages": []}, openai.BadRequestError, None),
    "five answers": ({"n": 5}, openai.BadRequestError, None),
    "a picture": (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
        openai.BadRequestError, None,
    ),
    "tools that this model does not know": (
        {"tools": [{"type": "function", "function": {"name": "f"}}]}, openai.BadRequestError, None,
    ),
    "a text that is too long": (
        {"messages": [{"role": "user", "content": "word " * 9000}]}, openai.BadRequestError,
        "context_length_exceeded",
    ),
    "an invalid token": ({"logit_bias": {"99999999": 1}}, openai.BadRequestError, None),
    "the old functions": ({"functions": [{"name": "f"}]}, openai.BadRequestError, None),
}  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_the_clients_own_error(client: OpenAI, case: str, stream: bool) -> None:
    changes, kind, code = REFUSED[case]
    with pytest.raises(kind) as refused:
        list(chat(client, stream=stream, **changes))
    assert refused.value.code == code
    assert str(dict(cast("Json", refused.value.body))["message"]).endswith(".")
    assert refused.value.request_id


def test_a_wrong_key(api: Open) -> None:
    with (
        OpenAI(api_key="wrong", base_url=f"{api.base}/v1", max_retries=0) as wrong,
        pytest.raises(openai.AuthenticationError) as refused,
    ):
        wrong.models.list()
    assert refused.value.code == "invalid_api_key"


def test_a_later_turn_is_quicker_for_the_same_program_only(client: OpenAI, api: Open) -> None:
    first = [{"role": "user", "content": "How do I add a computer to the household of mine?"}]
    said = content(chat(client, messages=first))
    later = [*first, {"role": "assistant", "content": said}, {"role": "user", "content": "And then?"}]
    own = chat(client, messages=later).usage.prompt_tokens_details.cached_tokens
    assert own > 15
    key = api.control("POST", "/api/keys", {"name": "another"})["key"]
    try:
        with OpenAI(api_key=key, base_url=f"{api.base}/v1", max_retries=0) as another:
            assert chat(another, messages=later).usage.prompt_tokens_details.cached_tokens == 0
    finally:
        api.control("DELETE", "/api/keys/another")
