"""Another real Poolhouse as an upstream: asked for what the pool lacks and when it is full, and never silently."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import aiohttp
import anthropic
import ollama
import openai
import pytest

from app.core.errors import BadInput, Reason, Unreachable
from tests.gateway.conftest import Open, free_port, opened
from tests.gateway.full_pool import full
from tests.gateway.gate_calls import ASK, CHAT
from tests.gateway.test_spending import There
from tests.node.pool import Json, node

PICTURE = (  # one gray pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
HEADER = "X-Poolhouse-Upstream"
FAR = ASK | {"model": "far/guide", "max_tokens": 5}


# a number that Python reads and no float holds
HUGE = b'data: {"choices": [{"logprobs": {"content": [{"token": "x", "logprob": %s}]}}]}' % (b"9" * 400)


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    with node(tmp_path_factory.mktemp("far"), "far") as test_node:
        yield opened(test_node)


@pytest.fixture
def barn(api: Open, far: Open) -> Iterator[str]:
    """An upstream that is on."""
    models = {"far/guide": "guide", "guide": "guide"}
    order = {"name": "barn", "url": f"{far.base}/v1/", "models": models, "cap_tokens": 100_000, "key": far.key}
    (added,) = api.control("POST", "/api/upstreams", order)["upstreams"]
    assert (added["on"], added["url"]) == (False, f"{far.base}/v1")  # only a person turns it on
    api.control("POST", "/api/upstreams/barn", {"on": True})
    yield "barn"
    assert api.control("DELETE", "/api/upstreams/barn") == {"upstreams": []}


@pytest.mark.long
async def test_what_the_pool_lacks_is_answered_there_and_says_so(
    api: Open, far: Open, http: aiohttp.ClientSession, barn: str
) -> None:
    async with (
        aiohttp.ClientSession(far.base, headers={"X-Api-Key": far.key}) as session,
        session.post(CHAT, json=ASK | {"max_tokens": 5}) as answer,
    ):
        should = (await answer.json())["choices"][0]
    async with http.post(CHAT, json=FAR, headers={"X-Request-Id": "from-den.1"}) as answer:
        body = await answer.json()
        assert (answer.status, answer.headers[HEADER]) == (200, barn), body
    assert body["poolhouse"] == {"upstream": barn}
    assert body["choices"][0]["message"] == should["message"]
    assert body["usage"]["completion_tokens"] == 5
    events = await asyncio.to_thread(api.control, "GET", "/journal")
    sentence = events["events"][-1]["sentence"]
    spent = body["usage"]["total_tokens"]
    assert sentence == f"barn answered instead of the pool and wrote {spent} tokens with guide."
    there = await asyncio.to_thread(far.control, "GET", "/journal")
    assert there["answers"][-1]["request"] == "from-den.1"  # the id goes with it
    (upstream,) = (await asyncio.to_thread(api.control, "GET", "/api/upstreams"))["upstreams"]
    assert upstream["spent_tokens"] == spent
    assert far.key not in json.dumps(upstream)
    async with http.get("/v1/models") as answer:
        assert "far/guide" in [model["id"] for model in (await answer.json())["data"]]
    async with http.get("/v1/models/far/guide") as answer:
        assert (await answer.json())["id"] == "far/guide"
    async with http.get("/api/tags") as answer:
        there = {model["name"]: model["digest"] for model in (await answer.json())["models"]}
        assert sorted(there) == ["far/guide", "guide"]  # what is here too, once
        assert all(len(digest) == 64 for digest in there.values())  # its command line cuts it short


@pytest.mark.long
async def test_what_the_pool_has_no_slot_for_is_answered_there_and_says_so(
    api: Open, http: aiohttp.ClientSession, barn: str
) -> None:
    ask = ASK | {"model": "guide"}
    was_full = False
    while not was_full:
        async with full(api, http) as pool:
            async with http.post(CHAT, json=ask) as answer:
                body, value = await answer.json(), answer.headers.get(HEADER)
            was_full = await pool.was_full()
    assert (answer.status, value, body.get("poolhouse")) == (200, barn, {"upstream": barn}), body
    async with http.post(CHAT, json=ask) as answer:  # it has slots again
        own = await answer.json()
        assert (answer.status, HEADER in answer.headers, "poolhouse" in own) == (200, False, False)
    assert own["choices"][0]["message"] == body["choices"][0]["message"]


async def test_one_that_is_off_is_named_to_who_asks_for_what_it_has(
    api: Open, http: aiohttp.ClientSession, barn: str
) -> None:
    await asyncio.to_thread(api.control, "POST", "/api/upstreams/barn", {"on": False})
    for model, words in (
        ("far/guide", f"but is turned off. Turn it on with `poolhouse upstream on barn --home {api.node.root}`"),
        ("nowhere", "There is no model called nowhere. Available: guide."),
        ("gude", "There is no model called gude. Did you mean guide? Available: guide."),
    ):  # fmt: skip
        async with http.post(CHAT, json=FAR | {"model": model}) as answer:
            error = (await answer.json())["error"]
            assert (answer.status, error["code"]) == (404, "model_not_found")
            assert words in error["message"]


async def test_two_that_ask_each_other_send_a_request_round_once(
    api: Open, far: Open, http: aiohttp.ClientSession
) -> None:
    for item, other in ((api, far), (far, api)):
        order = {"name": "round", "url": f"{other.base}/v1", "models": {"m": "m"}, "cap_tokens": 99,
                 "key": other.key}  # fmt: skip
        await asyncio.to_thread(item.control, "POST", "/api/upstreams", order)
        await asyncio.to_thread(item.control, "POST", "/api/upstreams/round", {"on": True})
    try:
        async with http.post(CHAT, json=FAR | {"model": "m"}) as answer:
            assert answer.status == 400
            assert "sent this request back to this computer" in (await answer.json())["error"]["message"]
    finally:
        for item in (api, far):
            await asyncio.to_thread(item.control, "DELETE", "/api/upstreams/round")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"key": "wrong"}, "it does not accept the key (401)"),
        ({"models": {"b": "no-such"}}, "it answered with status 404: There is no model called no-such. Available"),
        ({"url": "without /v1"}, "it answered with status 404: There is nothing at POST /chat/completions"),
    ],
)  # fmt: skip
async def test_what_is_wrong_with_one_is_said_and_how_it_is_tested(
    api: Open, far: Open, http: aiohttp.ClientSession, change: Json, why: str
) -> None:
    order: Json = {"name": "odd", "url": f"{far.base}/v1", "models": {"b": "guide"}, "cap_tokens": 999,
                   "key": far.key, **change}  # fmt: skip
    order["url"] = far.base if "url" in change else order["url"]
    await asyncio.to_thread(api.control, "POST", "/api/upstreams", order)
    await asyncio.to_thread(api.control, "POST", "/api/upstreams/odd", {"on": True})
    try:
        async with http.post(CHAT, json=FAR | {"model": "b"}) as answer:
            words = (await answer.json())["error"]["message"]
            assert answer.status == 503
    finally:
        await asyncio.to_thread(api.control, "DELETE", "/api/upstreams/odd")
    assert why in words
    assert words.endswith(f"`poolhouse upstream test odd --home {api.node.root}`.")


async def test_what_a_person_asks_here_goes_there_only_once_allowed(api: Open, barn: str) -> None:
    async with api.node.client() as client:
        for model, code in (("far/guide", "server_consent"), ("nowhere", "model_unknown")):
            with pytest.raises(BadInput, match=code):
                await client.work("POST", "/ask", {"prompt": "Hello", "model": model})
        await client.post("/api/upstreams/barn", {"chats": True})
        order = {"prompt": "How do I add a computer?", "model": "far/guide@barn", "max_tokens": 5}
        done = await client.work("POST", "/ask", order)
        assert (done["model"], done["tokens_elsewhere"], done["token_ids"]) == ("far/guide@barn", 5, [])
        assert [note["code"] for note in done["notes_facts"]] == ["answer_by_server"]
        assert done["text"]
        picture = {"role": "user", "content": "What is this?", "pictures": [PICTURE]}
        with pytest.raises(BadInput, match="picture_upstream"):
            await client.work("POST", "/ask", {"messages": [picture], "model": "far/guide"})


async def reached(api: Open, name: str) -> Any:
    upstreams = (await asyncio.to_thread(api.control, "GET", "/api"))["upstreams"]
    return next(item["last_contact"] for item in upstreams if item["name"] == name)


async def test_a_test_says_which_models_are_missing_and_spends_nothing(api: Open, far: Open, barn: str) -> None:
    before = time.time()
    result = await asyncio.to_thread(api.control, "POST", "/api/upstreams/barn/test", {})
    assert (result["name"], result["missing"]) == ("barn", [])
    assert await reached(api, "barn") >= before
    assert "guide" in result["models"]
    order = {"name": "odd", "url": f"{far.base}/v1", "models": {"a": "no-such"}, "cap_tokens": 9}
    await asyncio.to_thread(api.control, "POST", "/api/upstreams", order | {"key": far.key})
    assert await reached(api, "odd") is None
    result = await asyncio.to_thread(api.control, "POST", "/api/upstreams/odd/test", {})
    assert result["missing"] == ["no-such"]
    await asyncio.to_thread(api.control, "POST", "/api/upstreams", order | {"key": "wrong"})
    with pytest.raises(Unreachable) as refused:
        await asyncio.to_thread(api.control, "POST", "/api/upstreams/odd/test", {})
    assert refused.value.reason.facts["why"] == Reason("key_refused", {"status": 401})
    assert refused.value.reason.code == "upstream_test_failed"  # nobody's answer was due
    upstreams = (await asyncio.to_thread(api.control, "DELETE", "/api/upstreams/odd"))["upstreams"]
    assert [item["name"] for item in upstreams] == ["barn"]


async def test_streams_and_every_api_say_where_it_came_from(api: Open, http: aiohttp.ClientSession, barn: str) -> None:
    async with http.post(CHAT, json=FAR | {"stream": True}) as answer:
        assert answer.headers[HEADER] == barn
        lines = [line async for line in answer.content if line.startswith(b"data: {")]
        assert all(json.loads(line[6:])["poolhouse"] == {"upstream": barn} for line in lines)
    for path, body in (
        ("/v1/completions", {"prompt": "Hello", "max_tokens": 2}),
        ("/v1/responses", {"input": "Hello", "max_output_tokens": 2}),
        ("/v1/messages", {"messages": ASK["messages"], "max_tokens": 2}),
        ("/api/chat", {"messages": ASK["messages"], "stream": False, "options": {"num_predict": 2}}),
        ("/api/generate", {"prompt": "Hello", "stream": False, "options": {"num_predict": 2}}),
    ):
        async with http.post(path, json={"model": "far/guide", **body}) as answer:
            result = await answer.json()
            assert (answer.status, answer.headers[HEADER]) == (200, barn), result
            assert result["poolhouse"] == {"upstream": barn}, path


def test_the_official_clients_are_answered(api: Open, barn: str) -> None:
    hello: Any = ASK["messages"]
    with openai.OpenAI(api_key=api.key, base_url=f"{api.base}/v1", max_retries=0) as client:
        choices = client.chat.completions.create(
            model="far/guide", messages=hello, n=2, max_tokens=3, logprobs=True, top_logprobs=1
        ).choices
        assert [len(choice.logprobs.content) for choice in choices if choice.logprobs] == [3, 3]
    with (
        anthropic.Anthropic(api_key=api.key, base_url=api.base, max_retries=0) as claude,
        claude.messages.stream(model="far/guide", max_tokens=3, messages=hello) as stream,
    ):
        assert stream.get_final_message().usage.output_tokens == 3
    with ollama.Client(api.base, headers={"Authorization": f"Bearer {api.key}"}) as llama:
        assert llama.chat(model="far/guide", messages=hello, options={"num_predict": 3}).eval_count == 3


async def test_off_spent_and_odd_ones_are_not_asked(api: Open, http: aiohttp.ClientSession, barn: str) -> None:
    async def status(body: Json) -> tuple[int, str]:
        async with http.post(CHAT, json=body) as answer:
            return answer.status, (await answer.json())["error"]["message"]

    assert "its token ids may differ" in (await status(FAR | {"logit_bias": {"5": 1}}))[1]
    async with http.post(CHAT, json=FAR) as answer:
        assert answer.status == 200
    change = f"/api/upstreams/{barn}"
    await asyncio.to_thread(api.control, "POST", change, {"cap_tokens": 1})
    async with http.post(CHAT, json=FAR) as answer:
        assert answer.status == 400
        assert "has used all 1 of its tokens" in (await answer.json())["error"]["message"]
    again: Json = {"cap_tokens": 50, "forget_spent": True}
    (upstream,) = (await asyncio.to_thread(api.control, "POST", change, again))["upstreams"]
    assert (upstream["spent_tokens"], upstream["cap_tokens"]) == (0, 50)
    async with http.post(CHAT, json=FAR | {"max_tokens": 2000, "seed": 3}) as answer:
        assert (await answer.json())["usage"]["completion_tokens"] <= 50
    await asyncio.to_thread(api.control, "POST", change, {"on": False})
    assert (await status(FAR))[0] == 404
    for url in ("http://example.org/v1", "ftp://x", "https://u:p@x/v1", "https://x/v1?key=1", "x"):
        order: Json = {"name": "odd", "url": url, "models": {"a": "a"}, "cap_tokens": 1}
        with pytest.raises(BadInput, match="upstream_url"):
            await asyncio.to_thread(api.control, "POST", "/api/upstreams", order)
    with pytest.raises(BadInput, match="upstream_unknown"):
        await asyncio.to_thread(api.control, "POST", "/api/upstreams/nobody", {"on": True})


async def answers(*lines: bytes, status: int = 200) -> AsyncGenerator[int, None]:
    """A server that says these bytes to whoever asks; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d X\r\nConnection: close\r\n\r\n" % status + b"\n\n".join(lines))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("lines", "status", "got", "words"),
    [
        ((b"data: {no json",), 200, 503, "its answer could not be read"),
        ((b'data: {"choices": [{"delta": {"content": "Hel"}}]}', b""), 200, 200, "its answer could not be read"),
        ((b'data: {"choices": 7}',), 200, 503, "its answer could not be read"),
        ((HUGE,), 200, 503, "its answer could not be read"),
        ((b'data: {"error": "prompt is odd"}',), 200, 503, "its answer could not be read"),
        ((b"data: " + b"x" * (9 << 20),), 200, 503, "could not be read"),
        ((b"no",), 500, 503, "answered with status 500"),
        ((b'{"error": {"message": "prompt is\\nempty."}}',), 400, 400, "request: prompt is empty. "),
        ((b"no",), 422, 400, "request: it answered with status 422. "),
        ((b"no",), 429, 429, "is overloaded"),
        ((b"",), 302, 503, "answered with status 302"),
    ],
)
async def test_what_a_strange_upstream_says_breaks_nothing(
    api: Open, http: aiohttp.ClientSession, lines: tuple[bytes, ...], status: int, got: int, words: str
) -> None:
    serving = answers(*lines, status=status)
    port = await anext(serving)
    try:
        order = {"name": "odd", "url": f"http://127.0.0.1:{port}/v1", "models": {"x": "x"}, "cap_tokens": 99999}
        await asyncio.to_thread(api.control, "POST", "/api/upstreams", order)
        await asyncio.to_thread(api.control, "POST", "/api/upstreams/odd", {"on": True})
        async with http.post(CHAT, json=ASK | {"model": "x", "stream": True}) as answer:
            assert answer.status == got
            assert words in await answer.text()
        if got == status == 200:  # it began: the stream of a response ends in its own shape
            async with http.post("/v1/responses", json={"model": "x", "input": "Hello", "stream": True}) as answer:
                *_, before, last = (await answer.text()).strip().split("\n\n")
            name, data = last.split("\n")
            result = json.loads(data.removeprefix("data: "))
            assert (name, result["type"], result["code"]) == ("event: error", "error", "unavailable")
            assert words in result["message"]
            number = json.loads(before.split("data: ")[1])["sequence_number"]
            assert result["sequence_number"] == number + 1
        log = (api.node.root / "logs" / "node.log").read_text("utf-8")
        assert got == 429 or "odd answered" in log
        assert "prompt is" not in log  # a server may repeat what it was asked
    finally:
        await serving.aclose()
        await asyncio.to_thread(api.control, "DELETE", "/api/upstreams/odd")


async def test_no_redirect_takes_what_is_asked_and_its_key_elsewhere(api: Open, http: aiohttp.ClientSession) -> None:
    there = There()
    there.go.set()
    server = await asyncio.start_server(there.serve, "127.0.0.1", 0)
    elsewhere = server.sockets[0].getsockname()[1]
    head = b"HTTP/1.1 307 X\r\nConnection: close\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:%d/v1\r\n\r\n"

    async def sends_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head % elsewhere)
        await writer.drain()
        writer.close()

    first = await asyncio.start_server(sends_on, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{first.sockets[0].getsockname()[1]}/v1"
    order = {"name": "odd", "url": url, "models": {"x": "x"}, "cap_tokens": 9999, "key": "secret"}
    await asyncio.to_thread(api.control, "POST", "/api/upstreams", order)
    await asyncio.to_thread(api.control, "POST", "/api/upstreams/odd", {"on": True})
    try:
        async with http.post(CHAT, json=ASK | {"model": "x"}) as answer:
            assert answer.status == 503
            assert "answered with status 307" in await answer.text()
        assert there.asked == []
    finally:
        await asyncio.to_thread(api.control, "DELETE", "/api/upstreams/odd")
        first.close()
        server.close()


async def test_one_that_is_not_there_leaves_the_answer_to_the_pool_when_that_has_the_model(
    api: Open, http: aiohttp.ClientSession
) -> None:
    order = {"name": "gone", "url": f"http://127.0.0.1:{free_port()}/v1", "models": {"x": "x"}, "cap_tokens": 999}
    await asyncio.to_thread(api.control, "POST", "/api/upstreams", order)
    await asyncio.to_thread(api.control, "POST", "/api/upstreams/gone", {"on": True})
    try:
        async with http.post(CHAT, json=ASK | {"model": "x"}) as answer:
            assert answer.status == 503
            assert await reached(api, "gone") is None
            assert "it cannot be reached" in (await answer.json())["error"]["message"]
        async with http.post(CHAT, json=ASK) as answer:
            assert answer.status == 200
    finally:
        await asyncio.to_thread(api.control, "DELETE", "/api/upstreams/gone")
