"""Asks the hub for a listing: one deadline, one limit of bytes, its own hosts alone, nothing told of us."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import aiohttp
from yarl import URL

from app.catalog.hub.hub_address import Hub, proxy_of
from app.catalog.hub.hub_files import MAX_REDIRECTS, REDIRECTS, new_session
from app.core.errors import AppError, BadInput, Busy, Refused, Unreachable

MAX_ANSWER_BYTES = 16 << 20
SECONDS = 20.0


async def listed(
    hub: Hub,
    path: str,
    query: Sequence[tuple[str, str]],
    *,
    named: str,
    token: str | None,
    seconds: float,
) -> bytes:
    """The JSON that the hub answers. named: what was asked for, for the sentence that says it is not there.

    Asks once: whoever searches would rather be told. Raises AppError.
    """
    source = hub.host
    try:
        async with asyncio.timeout(seconds), new_session() as session:
            url = str(URL(f"{hub.endpoint}{path}").with_query(list(query)))
            for _ in range(MAX_REDIRECTS):
                headers = {}
                if token and hub.is_own(url):
                    headers["Authorization"] = f"Bearer {token}"
                async with session.get(
                    URL(url, encoded=True),
                    headers=headers,
                    allow_redirects=False,
                    proxy=proxy_of(url),
                ) as answer:
                    if answer.status in REDIRECTS:
                        url = hub.next(url, answer.headers.get("Location", ""))
                        continue
                    return await _body(hub, answer, named, bool(token))
    except TimeoutError:
        raise Unreachable("hub_slow", source=source) from None
    except (aiohttp.ClientError, OSError, ValueError):
        raise Unreachable("hub_away", source=source) from None
    raise Unreachable("hub_odd", source=source)


async def _body(hub: Hub, answer: aiohttp.ClientResponse, named: str, with_token: bool) -> bytes:
    if answer.status != 200:
        raise _refusal(hub, named, answer.status, with_token)
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise Unreachable("hub_odd", source=hub.host)  # a packed answer would pass the limit unseen
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise Unreachable("hub_answer_long", source=hub.host)
    return bytes(body)


def _refusal(hub: Hub, named: str, status: int, with_token: bool) -> AppError:
    if status in (401, 403) and with_token:
        return Refused("hub_token_wrong", source=hub.host)
    if status in (401, 403, 404):  # it says 401 of what is not there, too
        return BadInput("hub_unknown", repository=named[:200], source=hub.host)
    if status == 429:
        return Busy("hub_busy", source=hub.host)
    return Unreachable("hub_fault", source=hub.host, status=status)
