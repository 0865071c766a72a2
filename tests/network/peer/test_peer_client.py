"""Why a machine was not reached: what the system says of it, told apart where the cure differs."""

from __future__ import annotations

import asyncio
import errno
import os

import pytest

from app.core.ids import PipelineId
from app.network.peer.peer_client import CONNECTIONS, OPEN_SECONDS, PinnedConnector, _WebSocket, is_blocked_by_macos
from app.network.sockets import Address
from tests.network.nodes import Nodes


@pytest.mark.parametrize(
    ("number", "host", "platform", "held_back"),
    [
        (errno.EHOSTUNREACH, "192.168.1.20", "darwin", True),
        (errno.EHOSTUNREACH, "fe80::1%en0", "darwin", True),
        (errno.EHOSTUNREACH, "den-pc.local", "darwin", True),
        (errno.EHOSTUNREACH, "8.8.8.8", "darwin", False),  # nobody's own network
        (errno.EHOSTUNREACH, "den-pc.example", "darwin", False),
        (getattr(errno, "EHOSTDOWN", 64), "192.168.1.20", "darwin", False),  # it is off
        (errno.ECONNREFUSED, "192.168.1.20", "darwin", False),
        (errno.EHOSTUNREACH, "127.0.0.1", "darwin", False),
        (errno.EHOSTUNREACH, "192.168.1.20", "linux", False),  # there it is off
    ],
)
def test_macos_may_keep_us_from_our_own_network(number: int, host: str, platform: str, held_back: bool) -> None:
    cause = OSError(number, os.strerror(number))
    assert is_blocked_by_macos(cause, Address(host, 4242), platform) is held_back


async def test_as_many_data_connections_as_ever_are_opened_one_after_the_other(nodes: Nodes) -> None:
    """Each recovery opens some; what has ended counts no more, whoever still knows of it."""
    den, attic = await nodes.paired("den", "attic")
    link, kept = attic.network.link(den.network.id), []
    async with asyncio.timeout(OPEN_SECONDS):
        for _ in range(CONNECTIONS + 2):
            kept.append(channel := await link.open_data(PipelineId(bytes(16))))
            await channel.send(b"frame")
            assert await channel.receive() == b"frame"
            await channel.close()
    connector = link.paths.now._session.connector
    assert isinstance(connector, PinnedConnector)
    assert connector.n_in_use <= 1  # the control link


async def test_a_connection_that_nobody_waits_for_any_more_is_given_back(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that stalls is tried anew every second: each try ended with a connection of ours still open."""
    den, attic = await nodes.paired("den", "attic")
    link, hung = attic.network.link(den.network.id), asyncio.Event()

    async def hangs(*args: object) -> None:
        hung.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(_WebSocket, "switch_to_frames", hangs)
    async with asyncio.timeout(OPEN_SECONDS), asyncio.TaskGroup() as group:
        opening = group.create_task(link.open_data(PipelineId(bytes(16))), name="open a channel")
        await hung.wait()
        opening.cancel()
    connector = link.paths.now._session.connector
    assert isinstance(connector, PinnedConnector)
    assert connector.n_in_use <= 1  # the control link
