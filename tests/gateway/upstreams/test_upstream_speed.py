"""The arithmetic of a server's measured speed, and what a damaged or strange answer makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from app.api.chat_api import StreamsSpeed, UpstreamSpeed
from app.core.errors import BadInput, Unreachable
from app.gateway.upstreams.upstream_speed import UpstreamSpeeds, _Stream, together_tok_s
from app.gateway.upstreams.upstreams import Upstreams
from app.machine.paths import Home
from app.machine.secret_stores import SecretMap
from app.machine.settings import Upstream

PACE_S = 0.01  # between two words of the server, whose streams take turns


class Server:
    """A server that writes one word at a time for all its streams, so several at once gain nothing."""

    def __init__(self) -> None:
        self.n_words, self.asked = 20, 0
        self._turn = asyncio.Lock()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        self.asked += 1
        writer.write(b"HTTP/1.1 200 X\r\nConnection: close\r\n\r\n")
        for _ in range(self.n_words):
            async with self._turn:
                await asyncio.sleep(PACE_S)
            writer.write(b'data: {"choices": [{"delta": {"content": "word "}}]}\n\n')
        writer.write(b'data: {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": %d}}\n\n'
                     b"data: [DONE]\n\n" % self.n_words)  # fmt: skip
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[tuple[Server, dict[str, Upstream]]]:
    made = Server()
    serving = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{serving.sockets[0].getsockname()[1]}/v1"
    async with serving:
        yield made, {"barn": Upstream(url, {"m": "theirs"}, 10_000, on=True)}


def speeds_of(choice: dict[str, Upstream], root: Path) -> UpstreamSpeeds:
    keys = SecretMap(Home.at(root).create(), "upstream keys")
    return UpstreamSpeeds(Upstreams(lambda: choice, keys, root / "spent.json", lambda _: None), root / "speeds.json")


def test_the_prompt_counts_only_where_an_answer_comes_in_one_piece() -> None:
    pair = [_Stream(0.0, 2.0, 12.0, 64, 65), _Stream(0.0, 4.0, 12.0, 64, 65)]
    assert together_tok_s(pair) == 12.8
    assert together_tok_s([_Stream(0.0, 8.0, 8.0, 1, 64)]) == 8.0
    assert together_tok_s([_Stream(0.0, 0.0, 0.0, 1, 64)]) == 0.0


async def test_more_streams_are_tried_until_they_gain_nothing(
    server: tuple[Server, dict[str, Upstream]], tmp_path: Path
) -> None:
    made, choice = server
    speeds, changes = speeds_of(choice, tmp_path), list[int]()
    speeds.changed = lambda: changes.append(made.asked)
    speed = await speeds.measure("barn", choice["barn"])
    assert [item.streams for item in speed.at_once] == [1, 2]
    assert made.asked == 1 + 2
    assert speed.spent_tokens == 3 * (100 + 20)
    assert speed.ttft_s >= PACE_S
    assert changes == [3]
    assert speeds_of(choice, tmp_path).of("barn") == {"m": speed}  # the next start reads it
    await speeds.forget("barn")
    assert speeds_of(choice, tmp_path).of("barn") == {}


async def test_what_cannot_be_measured_says_why_and_keeps_nothing(
    server: tuple[Server, dict[str, Upstream]], tmp_path: Path
) -> None:
    made, choice = server
    speeds, barn = speeds_of(choice, tmp_path), choice["barn"]
    with pytest.raises(BadInput, match="upstream_measure_off"):
        await speeds.measure("barn", msgspec.structs.replace(barn, on=False))
    with pytest.raises(BadInput, match="upstream_model_unknown"):
        await speeds.measure("barn", barn, "other")
    with pytest.raises(BadInput, match="upstream_short"):
        await speeds.measure("barn", msgspec.structs.replace(barn, cap_tokens=2_999))
    assert made.asked == 0
    made.n_words = 2
    with pytest.raises(Unreachable, match="upstream_test_failed"):
        await speeds.measure("barn", barn)
    assert speeds.of("barn") == {}


def test_the_best_number_of_streams() -> None:
    at_once = [StreamsSpeed(1, 30.0), StreamsSpeed(2, 57.0), StreamsSpeed(4, 49.0)]
    speed = UpstreamSpeed(at=0.0, prompt_tokens=1, ttft_s=0.1, decode_tok_s=30.0, at_once=at_once)
    assert speed.best == StreamsSpeed(2, 57.0)
    assert msgspec.structs.replace(speed, at_once=[]).best == StreamsSpeed(1, 30.0)
