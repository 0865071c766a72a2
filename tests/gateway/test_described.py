"""Real answers are what the served description says: no field too few, none too many. Those of the comparison with
llama.cpp's server are held against it there."""

from __future__ import annotations

from typing import Any

import aiohttp
import msgspec
import pytest

from app.gateway.answer_types import Ranked
from app.gateway.openapi_document import ERRORS, GETS, POSTS, description
from tests.gateway.described_answers import check, is_exact

Json = dict[str, Any]
HELLO = [{"role": "user", "content": "Hello"}]
OF_OLLAMA: dict[str, tuple[str, Json]] = {
    "chat": ("/api/chat", {"messages": HELLO, "options": {"num_predict": 4}}),
    "a text": ("/api/generate", {"prompt": "Hello", "options": {"num_predict": 4}}),
    "a stop": ("/api/generate", {"prompt": "Hello", "options": {"num_predict": 40, "stop": ["e"]}}),
    "no such model": ("/api/chat", {"messages": HELLO, "model": "nobody"}),
    "nonsense": ("/api/generate", {"prompt": 7}),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", OF_OLLAMA)
async def test_ollamas_answers_are_as_described(http: aiohttp.ClientSession, name: str, stream: bool) -> None:
    path, body = OF_OLLAMA[name]
    async with http.post(path, json={"model": "guide", "stream": stream, **body}) as answer:
        content = await answer.read()
        assert (answer.status == 200) == (name not in ("no such model", "nonsense"))
        assert (answer.content_type == "application/x-ndjson") == (stream and answer.status == 200)
    check(path, answer.status, content)


@pytest.mark.parametrize("path", [path for path, (_, kind) in GETS.items() if is_exact(kind)])
async def test_what_is_asked_for_by_name_is_as_described(http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(path.replace("{name}", "guide")) as answer:
        check(path, answer.status, await answer.read())
        assert answer.charset == "utf-8"  # some clients assume Latin-1 where none is named
    async with http.get(path.replace("{name}", "nobody"), headers={"Origin": "http://x.test"}) as answer:
        assert answer.status == 403
        check(path, answer.status, await answer.read())


def test_every_answer_and_every_error_is_described() -> None:
    document = msgspec.json.decode(description(), type=Json)
    for path in (*GETS, *POSTS):
        ((method, route),) = document["paths"][path].items()
        for status, answer in route["responses"].items():
            for media, result in answer["content"].items():
                assert result["schema"], (method, path, status, media)
    for group in POSTS.values():
        assert is_exact(group.answer) or group.answer is Ranked
    assert all(map(is_exact, ERRORS.values()))


def test_an_answer_that_is_otherwise_is_seen() -> None:
    good = b'{"version": "1"}'
    check("/api/version", 200, good)
    check("/api/version", 404, b'{"error": "x"}')
    for status, body in ((200, b'{"version": "1", "more": 1}'), (200, b"{}"), (404, good)):
        with pytest.raises(msgspec.ValidationError):
            check("/api/version", status, body)
