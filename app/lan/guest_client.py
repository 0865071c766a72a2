"""Whole requests of a guest to a host: HTTP over a connection that is pinned on both sides."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import aiohttp

from app.core.errors import Unreachable
from app.core.membership import Member
from app.lan.client import OPEN_SECONDS, PinnedConnector, explained
from app.lan.listener import GUEST_PATH
from app.lan.sockets import Address
from app.lan.through import Through

LOOK_SECONDS = 0.5  # between looks whether the host is still there


class GuestClient:
    """Asks `host` at `address`. `ended` is set when the link to it is over: no answer outlives that.

    through: by this interface of ours; None: by the one that the system chooses.
    """

    def __init__(
        self,
        host: Member,
        address: Address,
        context: ssl.SSLContext,
        ended: asyncio.Event,
        through: Through | None = None,
    ) -> None:
        self.host, self._address, self._context, self._ended = host, address, context, ended
        self._through = through

    @asynccontextmanager
    async def asked(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """What it answers, once the status is there; leaving the block hangs up. Raises Unreachable, Refused."""
        async with aiohttp.ClientSession(
            connector=PinnedConnector(self._context, self.host.id, self._through),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=OPEN_SECONDS),
            auto_decompress=False,
            requote_redirect_url=False,
        ) as session:
            yield await self._begun(session, method, path, body, headers or {})

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
            except (aiohttp.ClientError, OSError) as error:
                raise explained(self.host, self._address, error) from error
            if not chunk:
                return
            yield chunk

    async def _begun(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
    ) -> aiohttp.ClientResponse:
        """A host may be long about an answer that comes as one piece: only its link says that it is gone."""
        url = f"https://{self._address}{GUEST_PATH}{path}"
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(
                _settled(session, method, url, body, headers), name="ask a host"
            )
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
    session: aiohttp.ClientSession, method: str, url: str, body: bytes, headers: Mapping[str, str]
) -> aiohttp.ClientResponse | Exception:
    """An error as a value: a TaskGroup would wrap it."""
    try:
        return await session.request(
            method, url, data=body or None, headers=headers, allow_redirects=False
        )
    except (aiohttp.ClientError, OSError, RuntimeError) as error:
        return error
