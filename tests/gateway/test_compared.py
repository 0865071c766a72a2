"""Each case of the comparison: what llama.cpp's own server answers is in our answer too, key by key and kind by kind.

The cases with tools are in test_tools.py, where a model that knows tools is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import aiohttp
import pytest
from pydantic import ValidationError

from tests import tiny_bert
from tests.gateway.answer_shape import Shape, misses, shape_of
from tests.gateway.as_recorded import ANOTHER, ANSWERED, EVERY, GUIDES, RECORD, REFUSED, compare
from tests.gateway.client_types import check_types
from tests.gateway.compared import CHAT, COUNT, READ, vector_cases
from tests.gateway.conftest import Open


@pytest.fixture(scope="module")
def bert(api: Open, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    path = tiny_bert.bert(tmp_path_factory.mktemp("compared") / "bert.gguf")
    assert api.node.run("import", str(path), "--name", "bert").returncode == 0
    yield
    api.control("POST", "/unload", {"model": "bert"})
    api.control("DELETE", "/models/bert")


def test_the_record_is_of_these_cases() -> None:
    assert RECORD.keys() == EVERY.keys()
    assert sum(item["status"] == 200 for item in RECORD.values()) >= 200
    assert all(RECORD[name]["status"] == 200 for name in REFUSED | ANOTHER)
    assert all(RECORD[name]["status"] != 200 for name in ANSWERED)
    assert not any("request-id" in header for item in RECORD.values() for header in item["headers"])


@pytest.mark.parametrize("name", GUIDES)
async def test_a_case(http: aiohttp.ClientSession, name: str) -> None:
    await compare(http, name)


@pytest.mark.usefixtures("bert")
@pytest.mark.parametrize("name", vector_cases())
async def test_vectors(http: aiohttp.ClientSession, name: str) -> None:
    await compare(http, name)


WRONG = {
    "a reason nobody has": (
        CHAT,
        {"id": "x", "object": "chat.completion", "created": 1, "model": "x", "choices": [
            {"index": 0, "finish_reason": "tired", "message": {"role": "assistant", "content": "x"}},
        ]},
    ),
    "a number as text": (COUNT, {"input_tokens": "7"}),
    "no object": (READ, {"input_tokens": 7}),
    "an invalid start time": ("/api/tags", {"models": [{"model": "x", "modified_at": "noon"}]}),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_an_official_client_takes_for_something_else_is_seen(case: str) -> None:
    path, answer = WRONG[case]
    with pytest.raises(ValidationError):
        check_types(path, 200, json.dumps(answer).encode())


def test_a_shape_that_lacks_something_is_seen() -> None:
    theirs = shape_of(b'{"a": [{"b": 1, "c": null}], "d": "x", "e": true}')
    assert misses(theirs, shape_of(b'{"a": [{"b": 2, "c": "y"}], "d": "z", "e": false, "f": 1}')) == []
    ours = shape_of(b'{"a": [{"b": "1"}], "d": {"x": 1}}')
    assert misses(theirs, ours) == [".a[].b: number, text", ".a[].c", ".d: of another kind", ".e"]
    stream = shape_of(b'data: {"a": null}\n\ndata: {"a": 1, "b": []}\n\ndata: [DONE]\n\n')
    assert stream == {"events": {"a": "nothing|number", "b": []}, "ends": "[DONE]"}
    typed = shape_of(b'event: x\ndata: {"type": "x", "a": 1}\n\nevent: y\ndata: {"type": "y"}\n\n')
    assert typed == {
        "events": {"x": {"type": "=x", "a": "number"}, "y": {"type": "=y"}},
        "order": "x y", "ends": "otherwise",
    }  # fmt: skip


def test_reasons_and_the_order_of_a_chats_parts_are_compared_where_nothing_is_left_to_chance() -> None:
    begun = 'data: {"choices": [{"delta": {"role": "assistant"}, "finish_reason": null}]}'
    said = 'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": null}]}'
    called = 'data: {"choices": [{"delta": {"tool_calls": []}, "finish_reason": null}]}'
    ended = 'data: {"choices": [{"delta": {}, "finish_reason": "REASON"}]}\n\ndata: [DONE]'

    def shape(*lines: str, reason: str) -> Shape:
        text = "\n\n".join([*lines, ended.replace("REASON", reason)])
        return shape_of(text.encode(), always=True)

    item = shape(begun, called, called, reason="tool_calls")
    other = shape(begun, said, reason="length")
    assert misses(item, item) == []
    assert misses(item, other) == [
        ".events.choices[].delta.tool_calls",
        ".events.choices[].finish_reason: =tool_calls|nothing, =length|nothing",
        ".order: role, tool_calls, the end, role, the end",
    ]
