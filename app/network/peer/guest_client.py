"""Whole requests of a guest to a host, or for a model's file: HTTP over a connection that is pinned on both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import aiohttp

from app.core.errors import Unreachable
from app.core.household.membership import Member
from app.network.peer.listener import GUEST_PATH
from app.network.peer.peer_client import explained
from app.network.sockets import Address

LOOK_SECONDS = 0.5  # between looks whether the host is still there
END_SECONDS = 0.25  # the end of an answer comes so soon after its last part, or its connection is not kept


class GuestClient:
    """Asks `host` at `address`. `ended` is set when the link to it is over: no answer outlives that.

    below: the path of what is asked there.
    session: the link's own; its connections stay open for a while, so that the next request needs no handshake.
    """

    def __init__(
        self,
        host: Member,
        address: Address,
        session: Callable[[], aiohttp.ClientSession],
        ended: asyncio.Event,
        below: str = GUEST_PATH,
    ) -> None:
        self.host, self._address, self._below = host, address, below
        self._session, self._ended = session, ended

    @asynccontextmanager
    async def asked(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """What it answers, once the status is there; leaving the block before its end hangs up. Raises
        Unreachable, Refused."""
        answer = await self._begun(method, path, body, headers or {})
        try:
            yield answer
            await _read_to_its_end(answer)
        finally:
            answer.close()  # of one that was read to its end, the connection is given back already

    async def chunks(self, answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises Unreachable when it breaks off."""
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    chunk = await answer.content.readany()
            except TimeoutError:
                if self._ended.is_set():
                    raise Unreachable("peer_offline", name=self.host.name) from None
                continue
            except (aiohttp.ClientError, OSError, RuntimeError) as error:
                # RuntimeError: the link was closed here, and this connection with it
                raise explained(self.host, self._address, error) from error
            if not chunk:
                return
            yield chunk

    async def _begun(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        """A host may be long about an answer that comes as one piece: only its link says that it is gone."""
        url = f"https://{self._address}{self._below}{path}"
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(_settled(self._session, method, url, body, headers), name="ask a host")
            over = group.create_task(self._ended.wait(), name="a host is gone")
            await asyncio.wait({asking, over}, return_when=asyncio.FIRST_COMPLETED)
            asking.cancel()
            over.cancel()
        if asking.cancelled():
            raise Unreachable("peer_offline", name=self.host.name)
        found = asking.result()
        if isinstance(found, Exception):
            raise explained(self.host, self._address, found) from found
        return found


async def _settled(
    session: Callable[[], aiohttp.ClientSession], method: str, url: str, body: bytes, headers: Mapping[str, str]
) -> aiohttp.ClientResponse | Exception:
    """An error as a value: a TaskGroup would wrap it."""
    try:
        return await session().request(method, url, data=body or None, headers=headers, allow_redirects=False)
    except (aiohttp.ClientError, OSError, RuntimeError) as error:
        return error


async def _read_to_its_end(answer: aiohttp.ClientResponse) -> None:
    """Whoever had the last part of an answer asks for nothing more; then only its end is left."""
    with suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(END_SECONDS):
            await answer.content.readany()
