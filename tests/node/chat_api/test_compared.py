"""Each case of the comparison: what llama.cpp's own server answers is in our answer too, key by key and kind by kind.

Its answers were recorded by `make api-compare` (llama_server.json). Where ours is another on purpose, the two tables
say why.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.node.chat_api.compared import cases, misses, shape_of

RECORD: dict[str, Any] = json.loads(
    Path(__file__).with_name("llama_server.json").read_text("utf-8")
)
DIFFERENT = {
    ".data[].permissions": "a part of OpenAI's models that OpenAI has dropped",
}
REFUSED = {
    "chat: no messages": "it answers an empty chat; OpenAI wants messages",
    "chat: negative temperature": "it takes it for 0; OpenAI refuses it",
    "completions: negative temperature": "as above",
}


def test_the_record_is_of_these_cases() -> None:
    assert RECORD.keys() == cases().keys()
    assert len(RECORD) >= 60
    assert sum(one["status"] == 200 for one in RECORD.values()) >= 60


@pytest.mark.parametrize("name", cases())
async def test_a_case(http: aiohttp.ClientSession, name: str) -> None:
    method, path, body = cases()[name]
    theirs = RECORD[name]
    async with http.request(method, path, json=body) as answer:
        ours = shape_of(await answer.read())
        if theirs["status"] != 200:
            assert 400 <= theirs["status"] <= 500  # it says 422 or 500 to what we say 400 to
            assert answer.status == 400
        elif name in REFUSED:
            assert (answer.status, bool(REFUSED[name])) == (400, True)
            return
        else:
            assert answer.status == 200, await answer.text()
    missing = [one for one in misses(theirs["shape"], ours) if one not in DIFFERENT]
    assert not missing


def test_a_shape_that_lacks_something_is_seen() -> None:
    theirs = shape_of(b'{"a": [{"b": 1, "c": null}], "d": "x", "e": true}')
    assert (
        misses(theirs, shape_of(b'{"a": [{"b": 2, "c": "y"}], "d": "z", "e": false, "f": 1}')) == []
    )
    ours = shape_of(b'{"a": [{"b": "1"}], "d": {"x": 1}}')
    assert misses(theirs, ours) == [".a[].b: number, text", ".a[].c", ".d: of another kind", ".e"]
    stream = shape_of(b'data: {"a": null}\n\ndata: {"a": 1, "b": []}\n\ndata: [DONE]\n\n')
    assert stream == {"events": {"a": "nothing|number", "b": []}, "ends": "[DONE]"}
