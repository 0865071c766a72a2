"""A web page that asks, and a template that loops: refused each time, and others are answered meanwhile."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from io import BytesIO

import aiohttp
import pytest

from app.gateway.streaming import MOST_PARTS
from testbed import tiny
from tests.gateway.conftest import Open, opened
from tests.gateway.gate_calls import ASK, CHAT
from tests.node.pool import BUSY, Json, node

LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
GROWS = "{% set ns = namespace(x='x') %}{% for a in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"
JSON = {"Content-Type": "application/json"}
WHOLE: Json = {"prompt": "Hello", "max_tokens": 3, "temperature": 0}


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/models"), ("POST", CHAT), ("OPTIONS", CHAT), ("GET", "/")])
async def test_no_web_page_is_let_in_by_cors(api: Open, method: str, path: str) -> None:
    key = {"Authorization": f"Bearer {api.key}"}
    page = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for headers, refused in ((key, False), (key | page, True), (page, True)):
        async with (
            aiohttp.ClientSession(api.base, headers=headers) as session,
            session.request(method, path, json=ASK if method == "POST" else None) as answer,
        ):
            assert (answer.status == 403) == refused
            assert not [name for name in answer.headers if name.startswith("Access-Control-")]


@pytest.mark.parametrize("unit", ["[]", "{}", '{"a":0}'])
@pytest.mark.parametrize("path", [CHAT, "/v1/responses", "/v1/messages", "/api/chat", "/v1/embeddings"])
async def test_a_body_of_very_many_parts_is_refused_before_it_is_read(
    http: aiohttp.ClientSession, path: str, unit: str
) -> None:
    """A few of them held up the whole node for half a second each."""
    many = ",".join([unit] * (MOST_PARTS + 1))
    data = f'{{"model":"guide","max_tokens":1,"input":"x","messages":[{{"role":"user","content":[{many}]}}]}}'
    async with http.post(path, data=BytesIO(data.encode()), headers=JSON) as answer:
        assert (answer.status, "lists, objects and fields" in await answer.text()) == (400, True)


async def test_a_text_may_have_as_many_signs_of_json_as_texts_have(http: aiohttp.ClientSession) -> None:
    text = '{"a": [1, "b"]}, ' * 60_000
    data = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    async with http.post(CHAT, data=BytesIO(data), headers=JSON) as answer:
        assert "can read at most 1,024" in (await answer.json())["error"]["message"]


@pytest.fixture(scope="module")
def looping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """A node with models from a stranger, whose templates have no end."""
    folder = tmp_path_factory.mktemp("looping")
    with node(folder / "den", "den") as test_node:
        for name, template in (("loops", LOOPS), ("grows", GROWS)):
            path = tiny.llama(folder / f"{name}.gguf", layers=2, vocab=300, template=template)
            test_node.run("import", str(path), "--name", name)
        yield opened(test_node, may_load=True)


@pytest.mark.long
@pytest.mark.parametrize("name", ["loops", "grows"])
async def test_a_template_without_an_end_is_said_and_others_are_answered(looping: Open, name: str) -> None:
    headers = {"Authorization": f"Bearer {looping.key}"}
    async with aiohttp.ClientSession(looping.base, headers=headers) as http:

        async def asked(path: str, body: Json) -> tuple[int, Json]:
            async with http.post(path, json=body | {"model": name}) as answer:
                return answer.status, await answer.json()

        status, first = await asked("/v1/completions", WHOLE)
        assert status == 200
        began = time.monotonic()
        chat, plain = await asyncio.gather(asked(CHAT, ASK), asked("/v1/completions", WHOLE))
        assert time.monotonic() - began < 3 * BUSY
        assert (chat[0], "chat template" in chat[1]["error"]["message"]) == (400, True), chat
        assert (plain[0], plain[1]["choices"]) == (200, first["choices"])
