"""A member connects to our port when it is asked, and says whether it could."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from app.core.errors import Unreachable
from app.network.messages import Called, CallMe, Message, decode, encode
from app.network.peer import peer_link
from app.network.peer.peer_link import RETRY_SECONDS, ReachabilityTest
from app.network.sockets import Address


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Somebody listens there."""

    async def end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(end, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def reached(near: ReachabilityTest) -> bool | None:
    """Return the far machine's report about it."""
    called = await near.ask()
    assert called is not None
    return called.reached


def two(near_port: int, clock: list[float], hears: bool | None = None) -> tuple[ReachabilityTest, ReachabilityTest]:
    """Both ends of a link; the near one listens at that port."""

    async def to_far(message: Message) -> None:
        assert isinstance(message, CallMe | Called)
        await far.handle(message)

    async def to_near(message: Message) -> None:
        assert isinstance(message, CallMe | Called)
        await near.handle(message)

    near = ReachabilityTest(to_far, lambda: Address("127.0.0.1", 1), lambda: clock[0])
    far = ReachabilityTest(to_near, lambda: Address("127.0.0.1", near_port), lambda: clock[0], lambda: hears)
    return near, far


async def test_who_listens_is_reached(port: int) -> None:
    near, _ = two(port, [0.0])
    assert await reached(near) is True


async def test_who_does_not_is_not() -> None:
    near, _ = two(closed_port(), [0.0])
    assert await reached(near) is False


async def test_nobody_is_used_to_knock_again_and_again(port: int) -> None:
    clock = [0.0]
    near, _ = two(port, clock)
    assert await reached(near) is True
    assert await reached(near) is None
    clock[0] += RETRY_SECONDS
    assert await reached(near) is True


@pytest.mark.parametrize("hears", [True, False, None])
async def test_who_is_asked_says_whether_it_hears_who_asks(port: int, hears: bool | None) -> None:
    near, _ = two(port, [0.0], hears=hears)
    called = await near.ask()
    assert called is not None
    assert (called.reached, called.hears) == (True, hears)
    assert decode(encode(called)) == called


async def test_silence_and_a_lost_link_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_link, "ANSWER_SECONDS", 0.05)

    async def swallow(_: Message) -> None:
        pass

    async def lost(_: Message) -> None:
        raise Unreachable("peer_closed", name="den")

    for send in (swallow, lost):
        assert await ReachabilityTest(send, lambda: Address("127.0.0.1", 1)).ask() is None


async def test_an_answer_nobody_asked_for_changes_nothing(port: int) -> None:
    near, _ = two(port, [0.0])
    await near.handle(Called(request=7, reached=False))
    assert await reached(near) is True
