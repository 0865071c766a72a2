"""Tests of an upstream's cost: its cap holds for many concurrent requests, whatever the server does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.core.errors import BadInput, Busy
from app.core.reasons import said
from app.gateway.api_request import AnswerEnd, ApiRequest, Json, Piece, Tool
from app.gateway.upstreams import upstreams as module
from app.gateway.upstreams.upstreams import USUAL_MOST, Upstreams
from app.machine.paths import Home
from app.machine.secret_stores import SecretMap
from app.machine.settings import Upstream

THOUGHT: Json = {"choices": [{"delta": {"reasoning_content": "hm "}}]}
WORD: Json = {"choices": [{"delta": {"content": "word "}}]}
CALL: Json = {"choices": [{"delta": {"tool_calls": [{"function": {"name": "f"}}]}}]}
WISH = ApiRequest("m", ({"role": "user", "content": "x"},))
GUESS = 10  # tokens of its prompt, from its length


class There:
    """A server: what it was asked for, and what it says to all. It waits for `go`."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self.heard = asyncio.Condition()
        self.says: list[Json] = [WORD]
        self.go, self.ends = asyncio.Event(), True
        self.refuses, self.words = "-", b""  # a field, and how

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        async with self.heard:
            self.asked.append(msgspec.json.decode(await reader.readexactly(length)))
            self.heard.notify_all()
        if self.refuses in self.asked[-1]:
            writer.write(b"HTTP/1.1 400 X\r\nConnection: close\r\n\r\n" + self.words)
            writer.close()
            return
        writer.write(b"HTTP/1.1 200 X\r\nConnection: close\r\n\r\n")
        await writer.drain()
        await self.go.wait()
        for chunk in self.says:
            writer.write(b"data: %s\n\n" % msgspec.json.encode(chunk))
        writer.write(b"data: [DONE]\n\n" if self.ends else b"")
        writer.close()


@pytest.fixture
async def there() -> There:
    return There()


@pytest.fixture
async def upstreams(there: There, tmp_path: Path) -> AsyncIterator[Upstreams]:
    server = await asyncio.start_server(there.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    choice = {"barn": Upstream(url, {"m": "theirs"}, 1000, on=True)}
    keys = SecretMap(Home.at(tmp_path).create(), "upstream keys")
    async with server:
        yield Upstreams(lambda: choice, keys, tmp_path / "spent.json", lambda _: None)


async def answered(upstreams: Upstreams, api_request: ApiRequest) -> list[Piece]:
    chosen = upstreams.choose("m")
    assert chosen is not None
    return [piece async for piece in upstreams.answer(chosen, api_request, 0, "r")]


async def until(there: There, count: int) -> None:
    async with asyncio.timeout(60), there.heard:
        await there.heard.wait_for(lambda: len(there.asked) >= count)


async def test_many_at_once_stay_within_the_cap_together(upstreams: Upstreams, there: There) -> None:
    many = ApiRequest("m", WISH.messages, max_tokens=300)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(answered(upstreams, many), name=f"{n}") for n in range(4)]
        await until(there, 4)
        assert [item["max_tokens"] for item in there.asked] == [300, 300, 300, 1000 - 3 * (GUESS + 300) - GUESS]
        assert upstreams.choose("m") is None
        with pytest.raises(Busy, match="upstream_busy"):  # nothing is spent yet
            upstreams.explain_missing("m", BadInput("model_unknown"))
        there.go.set()
    assert all(isinstance(task.result()[-1], AnswerEnd) for task in tasks)
    assert upstreams.spent == {"barn": 4 * (GUESS + 1)}
    assert upstreams.choose("m") is not None  # what was promised and not spent is there again
    upstreams.spent["barn"] = 1000
    with pytest.raises(BadInput, match="upstream_spent"):
        upstreams.explain_missing("m", BadInput("model_unknown"))


async def test_too_little_for_one_request_is_not_called_spent(upstreams: Upstreams, there: There) -> None:
    """A shorter one is still answered; and where answers under way hold what is left, it may come back."""
    upstreams.spent["barn"] = 1000 - GUESS
    with pytest.raises(BadInput) as refused:
        await answered(upstreams, WISH)
    assert said(refused.value).startswith(
        "barn has the model, but only 10 of its 1,000 tokens are left, and this request needs about 11."
    )
    upstreams.spent["barn"], upstreams._reserved["barn"] = 900, 95
    with pytest.raises(Busy, match="upstream_busy"):
        await answered(upstreams, WISH)
    upstreams._reserved.clear()
    there.go.set()
    upstreams.spent["barn"] = 1000 - GUESS - 1
    assert isinstance((await answered(upstreams, WISH))[-1], AnswerEnd)
    assert there.asked[0]["max_tokens"] == 1


async def test_an_answer_of_no_said_length_is_not_promised_all_there_is(upstreams: Upstreams, there: There) -> None:
    upstreams.spent["barn"] = 1000 - 40 * USUAL_MOST
    there.go.set()
    await answered(upstreams, WISH)
    assert there.asked[0]["max_tokens"] == (40 * USUAL_MOST - GUESS) // 4
    upstreams.spent["barn"] = 1000 - 2 * USUAL_MOST
    await answered(upstreams, WISH)
    assert there.asked[1]["max_tokens"] == USUAL_MOST


@pytest.mark.parametrize(
    ("expected", "cost"),
    [
        ([WORD] * 5 + [{"usage": {"prompt_tokens": -500, "completion_tokens": -500}}], GUESS + 5),
        ([WORD, {"usage": {"prompt_tokens": 7, "completion_tokens": 2}}], 9),
        ([CALL] * 3, GUESS + 3),  # words of a call are tokens too
        ([THOUGHT, {"choices": [{"delta": {"reasoning": "hm"}}]}, WORD], GUESS + 3),
        ([THOUGHT] * 400, GUESS + 51),
        ([WORD] * 400, GUESS + 51),  # it was asked for 50
        ([WORD, {"usage": {"prompt_tokens": 1e300}}], (1 << 40) + 1),
    ],
)
async def test_no_server_says_that_it_cost_less_than_it_must_have(
    upstreams: Upstreams, there: There, expected: list[Json], cost: int
) -> None:
    there.says = expected
    there.go.set()
    pieces = await answered(upstreams, ApiRequest("m", WISH.messages, max_tokens=50))
    assert upstreams.spent == {"barn": cost}
    end = pieces[-1]
    assert isinstance(end, AnswerEnd)
    assert (end.reason == "length") == (len(expected) == 400)


async def test_tools_and_the_form_of_an_answer_are_read_there_too(upstreams: Upstreams, there: There) -> None:
    """An agent's are longer than its chat: who leaves has had them read, and what is left must hold them."""
    there.go.set()
    long: Json = {"type": "object", "description": "x" * 600}
    for api_request in (replace(WISH, tools=(Tool("f", "x" * 600, {}),)), replace(WISH, schema=long)):
        await answered(upstreams, api_request)
        assert 200 + GUESS < upstreams.spent.pop("barn") < 230 + GUESS
    upstreams.spent["barn"] = 800
    with pytest.raises(BadInput, match="upstream_short"):
        await answered(upstreams, replace(WISH, schema=long))
    deep: Json = {}
    for _ in range(3000):
        deep = {"a": deep}
    with pytest.raises(BadInput, match="bad_request"):
        await answered(upstreams, replace(WISH, tools=(Tool("f", "", deep),)))


async def test_who_leaves_before_the_first_word_has_had_the_prompt_read(
    upstreams: Upstreams, there: There, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = upstreams.choose("m")
    assert chosen is not None
    taken, check, paid = asyncio.Event(), module._check, list[int]()

    async def checked(*args: Any) -> None:
        await check(*args)
        taken.set()

    monkeypatch.setattr(module, "_check", checked)

    async def leave(pieces: AsyncGenerator[Piece, None]) -> None:
        async with aclosing(pieces):
            await anext(pieces)

    async with asyncio.TaskGroup() as group:
        answer = upstreams.answer(chosen, WISH, 0, "r", paid.append)
        leaving = group.create_task(leave(answer), name="leave")
        await taken.wait()
        leaving.cancel()
    assert upstreams.spent == {"barn": GUESS}
    assert paid == [GUESS]
    there.go.set()
    await asyncio.sleep(0.01)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"barn": -5000}', b'{"barn": "1"}', b"[" * 9999])
async def test_a_damaged_count_closes_the_cap_until_the_owner_has_it_counted_anew(
    upstreams: Upstreams, tmp_path: Path, content: bytes
) -> None:
    file, messages = tmp_path / "spent.json", list[str]()
    file.write_bytes(content)
    again = Upstreams(upstreams._choice, upstreams.keys, file, lambda why: messages.append(said(why)))
    assert again.choose("m") is None
    again.report_uncounted()
    (sentence,) = messages
    assert str(file) in sentence
    assert "used: barn." in sentence
    with pytest.raises(BadInput, match="upstream_uncounted"):
        again.explain_missing("m", BadInput("model_unknown"))
    await again.reset_spent("other")  # of another one alone: it is written, and what is unknown stays so
    later = Upstreams(upstreams._choice, upstreams.keys, file, lambda why: messages.append(said(why)))
    assert not later.is_counted("barn")
    await later.reset_spent("barn")
    assert later.choose("m") is not None
    later.report_uncounted()
    assert len(messages) == 1
