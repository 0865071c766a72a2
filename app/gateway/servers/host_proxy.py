"""The proxy that forwards requests of this machine's programs to a host, and returns the host's answers."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from urllib.parse import quote

import aiohttp
import msgspec
from aiohttp import web

from app.core.errors import Unreachable
from app.decoding import decode
from app.gateway.access.auth import BODY, CALLER, ID, PROGRAM, UPSTREAM, Handler, id_headers
from app.gateway.error_responses import api_of, stream_error
from app.gateway.open_requests import STARTED, UNREAD_SECONDS, write
from app.gateway.phones.phone_auth import JOIN_ROUTE, programs_route
from app.gateway.streaming import EVENTS, NDJSON, UNBUFFERED
from app.gateway.upstreams.upstreams import FORWARDED_BY
from app.network.peer.peer_client import HostClient, reported_error
from app.network.traffic_limits import ANSWER_BYTES, TooLong, TooSlow, whole_body
from app.node.models.household_models import HEADERS, HouseholdModels

# headers of the host's answer that are forwarded, in addition to its type
KEPT = (UPSTREAM, "Retry-After", *UNBUFFERED)
HOST = "X-Poolhouse-Host"  # the machine that answered a forwarded request
REFUSED = 409  # a status that the listener for members uses, but the Chat API does not


class _Named(msgspec.Struct):
    """The only field of a request body that the proxy must read before forwarding it."""

    model: str = ""


def forward_to_host(household_models: HouseholdModels) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware that forwards requests for a host's model to that host."""
    secret = secrets.token_bytes(16)

    @web.middleware
    async def forward(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method != "POST" or request.match_info.http_exception is not None:
            return await handler(request)
        if _route(request) == JOIN_ROUTE:  # it belongs to this machine
            return await handler(request)
        model = model_name(request[BODY])
        there = await household_models.destination(model, by_program=True)
        host = there.host
        if host is None:
            if there.model != model:
                request[BODY] = _with_model(request[BODY], there.model)
            return await handler(request)
        body = request[BODY] if there.model == model else _with_model(request[BODY], there.model)
        caller = request[CALLER]
        named = {ID: caller.request_id, PROGRAM: _pseudonym(secret, caller.key)}
        headers = HEADERS | named | {FORWARDED_BY: ",".join(caller.forwarded_by)}
        # The route's pattern: a path that contains `..` could reach other routes of the host.
        path = programs_route(_route(request))
        async with host.request("POST", path, body, headers) as answer:
            if answer.status == REFUSED:
                raise reported_error(await _read_whole(host, answer), host.host.name, of_its_pool=True)
            if answer.content_type in (EVENTS, NDJSON):
                return await _forward_stream(request, host, answer)
            if (answer.content_length or 0) > ANSWER_BYTES:
                return await _forward_large(request, host, answer)
            body = await _read_whole(host, answer)
            return web.Response(body=body, status=answer.status, headers=_headers(host, answer))

    return forward


def _pseudonym(secret: bytes, key: str) -> str:
    """Return a pseudonym that distinguishes programs without revealing their names.

    If programs shared a conversation, the timing of an answer could reveal another program's requests.
    """
    return hmac.new(secret, key.encode(), "sha256").hexdigest()[:32]


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    assert resource is not None  # it is one of our routes
    return resource.canonical


def model_name(body: bytes) -> str:
    """Return the requested model's name, or "" if the body is invalid. The route or the host then reports the error."""
    try:
        return decode(body, _Named).model.removesuffix(":latest")
    except (ValueError, RecursionError):
        return ""


def _with_model(body: bytes, name: str) -> bytes:
    """Return a request body that names another model. The bytes of all other fields are unchanged."""
    fields = decode(body, dict[str, msgspec.Raw])
    return msgspec.json.encode(fields | {"model": name})


def _headers(host: HostClient, answer: aiohttp.ClientResponse) -> dict[str, str]:
    """Return the headers of a forwarded answer. One of them names the host, percent-encoded as in a URL."""
    kept = {HOST: quote(host.host.name)} | {name: answer.headers[name] for name in KEPT if name in answer.headers}
    return kept | {"Content-Type": answer.headers.get("Content-Type", "application/json")}


async def _read_whole(host: HostClient, answer: aiohttp.ClientResponse) -> bytes:
    try:
        return await whole_body(answer.content, answer.content_length, ANSWER_BYTES)
    except (TooLong, TooSlow, OSError, aiohttp.ClientError):
        raise Unreachable("peer_offline", name=host.host.name) from None


async def _forward_large(request: web.Request, host: HostClient, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Forward an answer that is too large to buffer, such as the vectors of many texts.

    If the host is lost before the end, the connection is aborted.
    """
    response = web.StreamResponse(status=answer.status, headers=_headers(host, answer) | id_headers(request))
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


async def _forward_stream(request: web.Request, host: HostClient, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Forward a stream. If the host is lost before the end, the stream ends with an error in the format of its API."""
    name = request[CALLER].request_id
    response = web.StreamResponse(status=answer.status, headers=_headers(host, answer) | id_headers(request))
    request[STARTED] = True
    await response.prepare(request)

    async def deliver(chunk: bytes) -> bool:
        """Send a chunk. Return whether the client accepted it."""
        try:
            async with asyncio.timeout(UNREAD_SECONDS):
                await response.write(chunk)
        except (ConnectionError, TimeoutError):  # the client has stopped reading or has left
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
