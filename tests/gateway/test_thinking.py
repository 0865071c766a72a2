"""A model that thinks, asked by the programs of each API, whole and as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import ollama
import openai
import pytest

from testbed import tiny
from tests.gateway.conftest import Open, opened
from tests.node.pool import node

Json = dict[str, Any]
TEMPLATE = (  # it writes the thought of the last answer, and knows no switch
    "{% for m in messages %}{% if m.reasoning_content and loop.index0 > 1 %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}!{% endif %}"
)
SAYS = ("<think>", "\n", "Hmm, ", "so ", "be ", "it.", "\n</think>", "\n\nYes,", " it ", "is.")
THOUGHT, ANSWER = "Hmm, so be it.", "Yes, it is."
HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def thinks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    folder = tmp_path_factory.mktemp("thinks")
    path = tiny.llama(folder / "thinker.gguf", layers=1, vocab=300, template=TEMPLATE, says=SAYS)
    with node(folder / "home", "den") as test_node:
        test_node.run("import", str(path), "--name", "thinker")
        house = opened(test_node, may_load=True)
        yield Open(test_node, house.port, house.key, model="thinker")


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("stream", [False, True])
def test_openai(thinks: Open, stream: bool) -> None:
    request: Json = {"model": "thinker", "messages": HELLO, "temperature": 0}
    with openai.OpenAI(api_key=thinks.key, base_url=f"{thinks.base}/v1", max_retries=0) as client:
        if stream:
            usage = {"include_usage": True}
            chunks = list(client.chat.completions.create(**request, stream=True, stream_options=usage))
            deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
            thoughts = [getattr(delta, "reasoning_content", None) or "" for delta in deltas]
            thought, text = "".join(thoughts), "".join(delta.content or "" for delta in deltas)
            assert sum(map(bool, thoughts)) > 2  # while it comes
            counted = chunks[-1].usage
        else:
            whole = client.chat.completions.create(**request)
            message, counted = whole.choices[0].message, whole.usage
            thought, text = message.reasoning_content, message.content
        assert (thought, text) == (THOUGHT, ANSWER)
        assert counted is not None
        assert counted.completion_tokens_details is not None
        assert counted.completion_tokens_details.reasoning_tokens == 7
        assert counted.completion_tokens == len(SAYS)
        with pytest.raises(openai.BadRequestError, match="always thinks"):
            client.chat.completions.create(**request, reasoning_effort="none")
        client.chat.completions.create(**request, reasoning_effort="high")  # sent to any model


@pytest.mark.parametrize("stream", [False, True])
def test_responses(thinks: Open, stream: bool) -> None:
    request: Json = {"model": "thinker", "input": "Hello", "temperature": 0}
    with openai.OpenAI(api_key=thinks.key, base_url=f"{thinks.base}/v1", max_retries=0) as client:
        if stream:
            events = list(client.responses.create(**request, stream=True))
            more = [event for event in events if event.type == "response.reasoning_text.delta"]
            assert "".join(item.delta for item in more) == THOUGHT
            whole = events[-1].response
        else:
            whole = client.responses.create(**request)
        thought, message = whole.output
        assert (thought.type, message.type) == ("reasoning", "message")
        assert thought.content[0].text == THOUGHT
        assert whole.output_text == ANSWER
        assert whole.usage is not None
        assert whole.usage.output_tokens_details.reasoning_tokens == 7
        again = [*HELLO, *whole.output, {"role": "user", "content": "Sure?"}]
        assert client.responses.create(model="thinker", input=again).output


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic(thinks: Open, stream: bool) -> None:
    request: Json = {"model": "thinker", "messages": HELLO, "extra_body": {"temperature": 0}, "max_tokens": 200,
                   "thinking": {"type": "enabled", "budget_tokens": 1024}}  # fmt: skip
    with anthropic.Anthropic(api_key=thinks.key, base_url=thinks.base, max_retries=0) as client:
        if stream:
            with client.messages.stream(**request) as events:
                whole = events.get_final_message()
        else:
            whole = client.messages.create(**request)
        thought, text = whole.content
        assert (thought.type, text.type) == ("thinking", "text")
        assert (thought.thinking, text.text) == (THOUGHT, ANSWER)
        assert thought.signature
        answered = {"role": "assistant", "content": [item.model_dump() for item in whole.content]}
        again = {
            **request,
            "messages": [*HELLO, answered, {"role": "user", "content": "Sure?"}],
            "thinking": {"type": "disabled"},
        }
        assert client.messages.create(**again).content


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("stream", [False, True])
def test_ollama(thinks: Open, stream: bool) -> None:
    headers = {"Authorization": f"Bearer {thinks.key}"}
    with ollama.Client(host=thinks.base, headers=headers) as client:
        request: Json = {"model": "thinker", "messages": HELLO, "options": {"temperature": 0}}
        parts = client.chat(**request, stream=True) if stream else [client.chat(**request, think=True)]
        messages = [part["message"] for part in parts]
        assert "".join(message.get("thinking") or "" for message in messages) == THOUGHT
        assert "".join(message["content"] for message in messages) == ANSWER
        assert "thinking" in client.show("thinker").capabilities
        with pytest.raises(ollama.ResponseError, match="always thinks"):
            client.chat(**request, think=False)
        with pytest.raises(ollama.ResponseError, match="does not support thinking"):
            client.chat(model="guide", messages=HELLO, think=True)


@pytest.mark.long
def test_a_thought_is_bounded(thinks: Open) -> None:
    with openai.OpenAI(api_key=thinks.key, base_url=f"{thinks.base}/v1", max_retries=0) as client:
        whole = client.chat.completions.create(
            model="thinker", messages=HELLO, temperature=0, max_tokens=30, logprobs=True,
            extra_body={"reasoning_budget_tokens": 4},
        )  # fmt: skip
    message = whole.choices[0].message
    assert message.reasoning_content == "Hmm, so"
    assert message.content


def test_how_likely_tokens_were_is_told_of_the_answers(thinks: Open) -> None:
    with openai.OpenAI(api_key=thinks.key, base_url=f"{thinks.base}/v1", max_retries=0) as client:
        whole = client.chat.completions.create(model="thinker", messages=HELLO, temperature=0, logprobs=True)
    likely = whole.choices[0].logprobs
    assert likely is not None
    assert [item.token for item in likely.content or ()] == ["\n\nYes,", " it ", "is."]


@pytest.mark.long
def test_the_command_line_leaves_thoughts_out_where_nobody_watches(thinks: Open) -> None:
    requests = ("ask", "Hello", "-m", "thinker", "-t", "0")
    assert thinks.node.run(*requests).stdout.strip() == ANSWER
    data = json.loads(thinks.node.run(*requests, "--json").stdout)
    assert (data["thought"], data["text"]) == (THOUGHT, ANSWER)
