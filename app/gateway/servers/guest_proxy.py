"""A guest's own programs: their requests to this machine's Chat API go to a host unchanged, and the answers back."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import aiohttp
import msgspec
from aiohttp import web

from app.core.errors import Unreachable
from app.decoding import decode
from app.gateway.access.auth import BODY, CALLER, ID, PROGRAM, UPSTREAM, Handler, id_headers
from app.gateway.open_requests import STARTED, UNREAD_SECONDS, write
from app.gateway.refusals import api_of, stream_error
from app.gateway.streaming import EVENTS, NDJSON, UNBUFFERED
from app.gateway.upstreams.upstreams import FORWARDED_BY
from app.network.peer.bounded_body import ANSWER_BYTES, TooLong, TooSlow, whole_body
from app.network.peer.peer_client import GuestClient, problem
from app.node.models.guest_answers import HEADERS, Guesting

KEPT = (UPSTREAM, "Retry-After", *UNBUFFERED)  # headers of the host's answer, beside its type
REFUSED = 409  # the listener's own; no answer of the Chat API has it


class _Named(msgspec.Struct):
    """The only field of a body that must be known to forward it."""

    model: str = ""


def forward_to_host(guesting: Guesting) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware that asks a host in this machine's place."""
    secret = secrets.token_bytes(16)

    @web.middleware
    async def forward(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method != "POST" or request.match_info.http_exception is not None:
            return await handler(request)
        model = _model(request[BODY])
        if not guesting.passes(model):
            return await handler(request)
        host = await guesting.host_for(model)
        caller = request[CALLER]
        named = {ID: caller.request_id, PROGRAM: _pseudonym(secret, caller.key)}
        headers = HEADERS | named | {FORWARDED_BY: ",".join(caller.forwarded_by)}
        # as the route is written: a path with `..` in it would lead to another door of the host
        path = _route(request)
        async with host.request("POST", path, request[BODY], headers) as answer:
            if answer.status == REFUSED:
                raise problem(await _read_whole(host, answer), host.host.name, of_its_pool=True)
            if answer.content_type in (EVENTS, NDJSON):
                return await _forward_stream(request, host, answer)
            if (answer.content_length or 0) > ANSWER_BYTES:
                return await _forward_large(request, host, answer)
            body = await _read_whole(host, answer)
            return web.Response(body=body, status=answer.status, headers=_headers(answer))

    return forward


def _pseudonym(secret: bytes, key: str) -> str:
    """Return a pseudonym that tells programs apart without revealing their names.

    Otherwise one could learn from the timing of its answer what another one asked.
    """
    return hmac.new(secret, key.encode(), "sha256").hexdigest()[:32]


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    assert resource is not None  # it is one of ours
    return resource.canonical


def _model(body: bytes) -> str:
    """Return the model's name; empty for an unreadable body: its own route, or the host, reports why."""
    try:
        return decode(body, _Named).model.removesuffix(":latest")
    except (ValueError, RecursionError):
        return ""


def _headers(answer: aiohttp.ClientResponse) -> dict[str, str]:
    kept = {name: answer.headers[name] for name in KEPT if name in answer.headers}
    return kept | {"Content-Type": answer.headers.get("Content-Type", "application/json")}


async def _read_whole(host: GuestClient, answer: aiohttp.ClientResponse) -> bytes:
    try:
        return await whole_body(answer.content, answer.content_length, ANSWER_BYTES)
    except (TooLong, TooSlow, OSError, aiohttp.ClientError):
        raise Unreachable("peer_offline", name=host.host.name) from None


async def _forward_large(request: web.Request, host: GuestClient, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Forward an answer that is too large to be held here, such as vectors of many texts.

    A host that goes away in the middle leaves a connection that ends there.
    """
    response = web.StreamResponse(status=answer.status, headers=_headers(answer) | id_headers(request))
    response.content_length = answer.content_length
    try:
        async with aclosing(host.chunks(answer)) as chunks:
            async for chunk in chunks:
                await write(request, response, chunk)
    except Unreachable:
        if request.transport is not None:
            request.transport.abort()
        return response
    await response.write_eof()
    return response


async def _forward_stream(
    request: web.Request, host: GuestClient, answer: aiohttp.ClientResponse
) -> web.StreamResponse:
    """Forward a stream. A host that goes away in the middle ends it with an error in its API's shape."""
    name = request[CALLER].request_id
    response = web.StreamResponse(status=answer.status, headers=_headers(answer) | id_headers(request))
    request[STARTED] = True
    await response.prepare(request)

    async def deliver(chunk: bytes) -> bool:
        """Send a part; return whether the program takes it."""
        try:
            async with asyncio.timeout(UNREAD_SECONDS):
                await response.write(chunk)
        except (ConnectionError, TimeoutError):  # it takes nothing, or has gone
            if request.transport is not None:
                request.transport.abort()
            return False
        return True

    try:
        async with aclosing(host.chunks(answer)) as chunks:
            async for chunk in chunks:
                if not await deliver(chunk):
                    return response
    except Unreachable as error:
        if not await deliver(stream_error(api_of(request.path), error, name)):
            return response
    await response.write_eof()
    return response
