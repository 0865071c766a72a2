"""An answer that was cut within its thought goes on there, by each API's last message of the assistant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import ollama
import openai
import pytest

from testbed import thinker
from tests.gateway.conftest import Open, opened
from tests.node.pool import node

Json = dict[str, Any]
CUT, REST, ANSWER = "Hmm, so", " be it.", "Yes, it is."
HELLO = {"role": "user", "content": "Hello"}


@pytest.fixture(scope="module")
def thinks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    folder = tmp_path_factory.mktemp("cut")
    path = thinker.thinker(folder / "thinker.gguf", layers=1)
    with node(folder / "home", "den") as test_node:
        test_node.run("import", str(path), "--name", "thinker")
        house = opened(test_node, may_load=True)
        yield Open(test_node, house.port, house.key, model="thinker")


def test_openai(thinks: Open) -> None:
    request: Json = {"model": "thinker", "temperature": 0}
    with openai.OpenAI(api_key=thinks.key, base_url=f"{thinks.base}/v1", max_retries=0) as client:
        cut = client.chat.completions.create(**request, messages=[HELLO], max_tokens=2).choices[0]
        assert (cut.message.reasoning_content, cut.message.content or "") == (CUT, "")
        assert cut.finish_reason == "length"
        for content in ("", None):
            begun = {"role": "assistant", "content": content, "reasoning_content": CUT}
            rest = client.chat.completions.create(**request, messages=[HELLO, begun]).choices[0]
            assert rest.message.reasoning_content.strip() == REST.strip()
            assert rest.message.content == ANSWER
        said = {"role": "assistant", "content": "\n\nYes,", "reasoning_content": CUT + REST}
        rest = client.chat.completions.create(**request, messages=[HELLO, said]).choices[0]
        assert getattr(rest.message, "reasoning_content", None) is None
        assert rest.message.content == " it is."


def test_responses(thinks: Open) -> None:
    request: Json = {"model": "thinker", "temperature": 0}
    with openai.OpenAI(api_key=thinks.key, base_url=f"{thinks.base}/v1", max_retries=0) as client:
        thought = {"type": "reasoning", "id": "rs_1", "summary": [],
                   "content": [{"type": "reasoning_text", "text": CUT}]}  # fmt: skip
        rest = client.responses.create(**request, input=[HELLO, thought])
        assert rest.output[0].content[0].text == REST.strip()
        assert rest.output_text == ANSWER


def test_anthropic(thinks: Open) -> None:
    with anthropic.Anthropic(api_key=thinks.key, base_url=thinks.base, max_retries=0) as client:
        thought = {"type": "thinking", "thinking": CUT, "signature": "x"}
        rest = client.messages.create(
            model="thinker", max_tokens=200, extra_body={"temperature": 0},
            messages=[HELLO, {"role": "assistant", "content": [thought]}],
        )  # fmt: skip
        assert rest.content[0].thinking == REST.strip()
        assert rest.content[1].text == ANSWER


def test_ollama(thinks: Open) -> None:
    headers = {"Authorization": f"Bearer {thinks.key}"}
    with ollama.Client(host=thinks.base, headers=headers) as client:
        begun = {"role": "assistant", "content": "", "thinking": CUT}
        rest = client.chat(model="thinker", messages=[HELLO, begun], options={"temperature": 0})
        assert (rest.message.thinking or "").strip() == REST.strip()
        assert rest.message.content == ANSWER
