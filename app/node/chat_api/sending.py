"""A stream of an answer over HTTP: errors before its first piece have a status, later ones end it in its shape."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from app.core.errors import AppError, BadInput
from app.node.chat_api.gate import ASKER, BODY, HOME, from_elsewhere, ids_of
from app.node.chat_api.refusals import api_of, in_stream
from app.node.chat_api.writing import write
from app.node.plain_words import plainly, wrong_field

log = logging.getLogger(__name__)

S = TypeVar("S", bound=msgspec.Struct)
EVENTS, NDJSON = "text/event-stream", "application/x-ndjson"


def read(request: web.Request, kind: type[S]) -> S:
    """The request's body as `kind`. Raises BadInput with the field that is wrong."""
    try:
        return msgspec.json.decode(request[BODY] or b"{}", type=kind)
    except ValueError as error:
        raise BadInput(
            "bad_request", why=plainly(str(error)), field=wrong_field(str(error))
        ) from None
    except RecursionError:
        raise BadInput("bad_request", why="it is nested too deeply", field="") from None


def event(data: Any, name: str = "") -> bytes:
    """A server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return b"%sdata: %s\n\n" % (head, msgspec.json.encode(data))


async def send(
    request: web.Request, content_type: str, parts: AsyncGenerator[bytes, None]
) -> web.StreamResponse:
    """Send the parts as they come. Closing the connection closes `parts`, which cancels the answer."""
    answer = web.StreamResponse(headers={"Cache-Control": "no-store", **ids_of(request)})
    answer.content_type = content_type
    async with aclosing(parts):
        part: bytes | None = await anext(parts)  # an AppError here is answered with its status
        answer.headers.update(from_elsewhere(request[ASKER]))
        await answer.prepare(request)
        try:
            while part is not None:
                await write(request, answer, part)
                part = await anext(parts, None)
        except AppError as error:
            name, home = request[ASKER].request, request[HOME]
            last = in_stream(api_of(request.path), error, name, home)
            await write(request, answer, last)
        except Exception:  # the outer wall of a request whose answer has begun
            log.exception("%s failed", request.path)
            bug = in_stream(api_of(request.path), AppError("bug"), request[ASKER].request)
            await write(request, answer, bug)
    await answer.write_eof()
    return answer
