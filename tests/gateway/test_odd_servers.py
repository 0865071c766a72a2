"""Upstreams that answer oddly, or with harm in mind: packed or without an end, and calls that lack something."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncGenerator

import aiohttp
import pytest

from app.gateway.api_request import AnswerEnd, CallDone, CollectedAnswer
from app.gateway.upstreams import upstreams
from app.gateway.upstreams.upstream_dialect import MOST_CHARS, UpstreamAnswer
from app.gateway.upstreams.upstreams import ProtocolViolation, chunks
from tests.gateway.conftest import Open
from tests.gateway.gate_calls import ASK, CHAT
from tests.node.pool import Json

WORD, DONE = b'data: {"choices": [{"delta": {"content": "x"}}]}', b"data: [DONE]"


class Content:
    """A body that comes in these parts."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = parts

    async def iter_any(self) -> AsyncGenerator[bytes, None]:
        for part in self._parts:
            yield part


async def read(*parts: bytes) -> list[Json]:
    return [chunk async for chunk in chunks(Content(*parts))]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\n\n", b"\r\n\r\n", b"\n: waits\n\n"])
async def test_events_are_read_however_they_are_cut(size: int, end: bytes) -> None:
    whole = b"\n\nevent: x\n" + WORD + end + b"data:{}" + end + DONE
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    assert await read(*parts) == [{"choices": [{"delta": {"content": "x"}}]}, {}]


async def test_a_stream_without_an_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstreams, "MOST_EVENTS", 3)
    assert len(await read(b"data: {}\n" * 3 + DONE)) == 3
    for parts, why in (
        ([b"data: {}\n" * 4], "more events"),
        ([b"data: " + b"x" * (1 << 20)] * 5, "line without an end"),
        ([WORD + b"\n"], "ended in the middle"),
        ([b'data: {"error": {}}\n', b'data: {"error": {"message": "no"}}\n'], "an error"),
    ):
        with pytest.raises(ProtocolViolation, match=why):
            await read(*parts)


async def test_lines_that_say_nothing_are_passed_over_at_once() -> None:
    begun_s = time.process_time()
    with pytest.raises(ProtocolViolation):
        await read(*[b"\n" * (1 << 16)] * 160)
    assert time.process_time() - begun_s < 1


async def test_what_is_packed_is_not_unpacked(api: Open, http: aiohttp.ClientSession) -> None:
    """A hundred million empty lines are a hundred kilobytes so, and held every answer of the node up for a quarter of
    a minute."""
    heads = list[bytes]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        packed = zlib.compress(WORD + b"\n" + DONE)
        writer.write(b"HTTP/1.1 200 X\r\nContent-Encoding: deflate\r\nConnection: close\r\n\r\n" + packed)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    order = {"name": "odd", "url": url, "models": {"x": "x"}, "cap_tokens": 9999}
    await asyncio.to_thread(api.control, "POST", "/api/upstreams", order)
    await asyncio.to_thread(api.control, "POST", "/api/upstreams/odd", {"on": True})
    try:
        async with server, http.post(CHAT, json=ASK | {"model": "x"}) as answer:
            said = (await answer.json())["error"]["message"]
        assert (answer.status, "could not be read" in said) == (503, True), said
        assert b"\r\naccept-encoding: identity\r\n" in heads[0].lower()
    finally:
        await asyncio.to_thread(api.control, "DELETE", "/api/upstreams/odd")


def said(**delta: object) -> Json:
    return {"choices": [{"delta": delta}]}


def call(index: int | None = None, **more: object) -> Json:
    """A piece of one. Some servers give no number."""
    function = {name: more.pop(name) for name in ("name", "arguments") if name in more}
    return more | {"function": function} | ({} if index is None else {"index": index})


def test_an_answer_has_so_much_text_and_no_more() -> None:
    """All of it is gathered here, and a token is counted for each piece, however long it is."""
    for piece in (said(content="x" * (1 << 20)), said(tool_calls=[call(0, arguments="x" * (1 << 20))])):
        heard = UpstreamAnswer(0)
        for _ in range(MOST_CHARS >> 20):
            heard.pieces(piece)
        with pytest.raises(ValueError, match="without an end"):
            heard.pieces(piece)


def test_a_piece_of_a_stream_is_of_one_answer_and_has_few_calls() -> None:
    """Millions of either were looked at, one by one."""
    heard = UpstreamAnswer(0)
    assert len(heard.pieces({"choices": [{"delta": {"content": "x"}}] * 3})) == 1
    with pytest.raises(ValueError, match="too many calls"):
        heard.pieces(said(tool_calls=[call(0)] * 129))


def test_calls_are_told_apart_by_their_ids_where_a_server_numbers_none() -> None:
    heard = UpstreamAnswer(0)
    heard.pieces(said(tool_calls=[call(id="a", name="clock", arguments='{"zone": ')]))
    heard.pieces(said(tool_calls=[call(arguments='"UTC"}')]))
    heard.pieces(said(tool_calls=[call(id="b", name="clock", arguments="{}")]))
    first, second, end = heard.end(1.0, 0.5)
    assert isinstance(first, CallDone)
    assert isinstance(second, CallDone)
    assert (first.id, first.arguments, first.half) == ("a", '{"zone": "UTC"}', None)
    assert (second.number, second.id, second.arguments) == (1, "b", "{}")
    assert isinstance(end, AnswerEnd)
    assert end.reason == "calls"


def test_whole_calls_without_ids_and_numbers_stay_apart() -> None:
    """Covers two tools, and one tool twice. A server that repeats the name in each piece makes one call."""
    heard = UpstreamAnswer(0)
    for name, arguments in (
        ("clock", '{"zone": "UTC"}'), ("clock", '{"zone": "CET"}'), ("date", "{}"),
        ("month", '{"of"'), ("month", ": {"), ("month", '"a": 1}'), ("month", "}"),
    ):  # fmt: skip
        heard.pieces(said(tool_calls=[call(name=name, arguments=arguments)]))
    *calls, _ = heard.end(1.0, 0.5)
    assert [(item.name, item.arguments) for item in calls if isinstance(item, CallDone)] == [
        ("clock", '{"zone": "UTC"}'),
        ("clock", '{"zone": "CET"}'),
        ("date", "{}"),
        ("month", '{"of": {"a": 1}}'),
    ]


def test_a_call_without_an_id_gets_one_that_its_result_can_name() -> None:
    heard = UpstreamAnswer(0)
    heard.pieces(said(tool_calls=[call(0, name="clock"), call(1, name="clock")]))
    first, second, _ = heard.end(1.0, 0.5)
    assert isinstance(first, CallDone)
    assert isinstance(second, CallDone)
    assert first.id.startswith("call_")
    assert first.id != second.id


def test_no_answer_ends_with_calls_that_are_not_there() -> None:
    heard, whole = UpstreamAnswer(0), CollectedAnswer()
    for piece in heard.pieces(said(content="x") | {}):
        whole.add(piece)
    heard.pieces({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    (end,) = heard.end(1.0, 0.5)
    assert isinstance(end, AnswerEnd)
    assert (end.reason, whole.text) == ("stop", "x")
