"""Each case of the comparison: what llama.cpp's own server answers is in our answer too, key by key and kind by kind.

Its answers were recorded by `make api-compare` (llama_server.json). Where ours is another on purpose, the tables say
why. Ours are held against the served description on the way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests import tiny_bert
from tests.node.chat_api.answer_shape import misses, shape_of
from tests.node.chat_api.compared import Case, cases, vector_cases
from tests.node.chat_api.conftest import Open
from tests.node.chat_api.described_answers import check

RECORD: dict[str, Any] = json.loads(
    Path(__file__).with_name("llama_server.json").read_text("utf-8")
)["cases"]
EVERY = cases() | vector_cases()
DIFFERENT = {  # what ours has not
    r"(\.events(\..*)?)?\.timings": "llama.cpp's own; ours are in /metrics and in Ollama's answers",
    r"(\.events)?\.system_fingerprint": "OpenAI tells nobody to use it any more",
    r"\.events\.usage": "OpenAI tells it in a stream to those who ask for it, and so does ours",
    r"\.data\[\]\.(aliases|meta|tags)": "llama.cpp's own",
    r"\.models": "Ollama's list, which ours gives to those who ask as Ollama's clients do",
    r"\.data\[\]\.encoding_format": "llama.cpp's own",
    r".*\.logprobs\.content\[\]\.(top_logprobs\[\]\.)?id": "llama.cpp's own",
    r"(\.events)?\.choices\[\]\.logprobs\.content": "of texts it tells them as of chats; OpenAI has another form",
    r"\.completed_at": "nothing reads it: an answer that comes as a whole is completed when it is there",
    r"\.events\.response\.completed": "what is cut short is incomplete to OpenAI, and completed to it",
    r"\.order: (.*)response\.completed, \1response\.incomplete": "as above",
    r"\.error\.code": "Anthropic's errors have none",
}  # fmt: skip
REFUSED = {  # by ours alone
    "chat: negative temperature": "it takes it for 0; OpenAI refuses it",
    "completions: negative temperature": "as above",
    "chat: top_p above one": "it takes it for 1; OpenAI refuses it",
    "chat: a role nobody has": "it writes it into the prompt; OpenAI refuses it",
    "chat: pattern in the schema": "regular expressions are refused: one can take for ever",
    "messages: messages of a wrong kind": "it answers an empty chat; Anthropic wants a list",
}
ANSWERED = {  # by ours alone
    "responses: conversation": "it wants the model's own messages in parts; OpenAI takes a text too",
    "responses, streamed: conversation": "as above",
}


@pytest.fixture(scope="module")
def bert(api: Open, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    path = tiny_bert.bert(tmp_path_factory.mktemp("compared") / "bert.gguf")
    assert api.node.run("import", str(path), "--name", "bert").returncode == 0
    yield
    api.control("POST", "/unload", {"model": "bert"})
    api.control("DELETE", "/models/bert")


def test_the_record_is_of_these_cases() -> None:
    assert RECORD.keys() == EVERY.keys()
    assert sum(one["status"] == 200 for one in RECORD.values()) >= 100


@pytest.mark.parametrize("name", cases())
async def test_a_case(http: aiohttp.ClientSession, name: str) -> None:
    await compare(http, name, EVERY[name])


@pytest.mark.usefixtures("bert")
@pytest.mark.parametrize("name", vector_cases())
async def test_vectors(http: aiohttp.ClientSession, name: str) -> None:
    await compare(http, name, EVERY[name])


async def compare(http: aiohttp.ClientSession, name: str, case: Case) -> None:
    method, path, body = case
    theirs = RECORD[name]
    async with http.request(method, path, json=body) as answer:
        given = await answer.read()
    check(path, answer.status, given)
    if theirs["status"] != 200 and name not in ANSWERED:
        assert 400 <= theirs["status"] <= 501
        assert answer.status == 400, given
    elif name in REFUSED:
        assert answer.status == 400, given
        return
    else:
        assert answer.status == 200, given
        if name in ANSWERED:
            return
    missing = misses(theirs["shape"], shape_of(given))
    assert not [one for one in missing if not any(re.fullmatch(known, one) for known in DIFFERENT)]


def test_a_shape_that_lacks_something_is_seen() -> None:
    theirs = shape_of(b'{"a": [{"b": 1, "c": null}], "d": "x", "e": true}')
    assert (
        misses(theirs, shape_of(b'{"a": [{"b": 2, "c": "y"}], "d": "z", "e": false, "f": 1}')) == []
    )
    ours = shape_of(b'{"a": [{"b": "1"}], "d": {"x": 1}}')
    assert misses(theirs, ours) == [".a[].b: number, text", ".a[].c", ".d: of another kind", ".e"]
    stream = shape_of(b'data: {"a": null}\n\ndata: {"a": 1, "b": []}\n\ndata: [DONE]\n\n')
    assert stream == {"events": {"a": "nothing|number", "b": []}, "ends": "[DONE]"}
    typed = shape_of(b'event: x\ndata: {"type": "x", "a": 1}\n\nevent: y\ndata: {"type": "y"}\n\n')
    assert typed == {
        "events": {"x": {"type": "text", "a": "number"}, "y": {"type": "text"}},
        "order": "x y", "ends": "otherwise",
    }  # fmt: skip
