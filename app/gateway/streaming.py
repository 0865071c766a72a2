"""Streams of answers over HTTP: errors before the first piece have a status, later ones end the stream in its shape."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from app.core.errors import AppError, BadInput
from app.decoding import decode
from app.gateway.access.auth import ASKER, BODY, HOME, from_elsewhere, ids_of
from app.gateway.open_requests import WHOLE, closed, closes, end, write
from app.gateway.refusals import Api, api_of, in_stream, too_deep
from app.node.control.request_body import explain, wrong_field

log = logging.getLogger(__name__)

S = TypeVar("S", bound=msgspec.Struct)
FLOAT = re.compile("Expected `int.*, got `float`")
EVENTS, NDJSON = "text/event-stream", "application/x-ndjson"
# A stream must not be held on its way: neither by a cache, nor by nginx, which buffers pages.
UNHELD = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
# Lists, objects and fields of a body, or as many of their signs: while they are read no other request is answered.
MOST_PARTS = 1 << 19
SILENT_SECONDS = 20.0  # then a sign of life: Node's fetch takes 300 of silence for the end


def read(request: web.Request, kind: type[S]) -> S:
    """Return the request's body as `kind`. Raises BadInput with the field that is wrong.

    A whole number may be written as 40.0, which some programs do with all of theirs.
    """
    data = request[BODY] or b"{}"
    if len(data) > MOST_PARTS and len(data) - len(data.translate(None, b"[{:")) > MOST_PARTS:
        why = f"it has more than {MOST_PARTS:,} lists, objects and fields"
        raise BadInput("bad_request", why=why, field="")
    try:
        try:
            return decode(data, kind)
        except msgspec.ValidationError as error:
            if not FLOAT.match(str(error)):
                raise
            return decode(data, kind, strict=False)
    except ValueError as error:
        raise BadInput("bad_request", why=explain(str(error)), field=wrong_field(str(error))) from None
    except RecursionError:
        raise too_deep() from None


def event(data: Any, name: str = "") -> bytes:
    """Return a server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return b"%sdata: %s\n\n" % (head, msgspec.json.encode(data))


async def send(
    request: web.Request,
    content_type: str,
    parts: AsyncGenerator[bytes, None],
    silent_s: float = SILENT_SECONDS,
    in_words: Callable[[AppError], bytes] | None = None,
) -> web.StreamResponse:
    """Send the parts as they come. Closing the connection closes `parts`, which cancels the answer.

    in_words: encodes an error, if that depends on what was sent before.
    """
    answer = web.StreamResponse(headers=UNHELD | ids_of(request))
    answer.content_type = content_type
    stream = _Stream(request, answer)
    failed: AppError | None = None
    async with aclosing(parts), asyncio.TaskGroup() as group:
        signs = stream.signs(_sign(request, content_type), silent_s)
        beside = group.create_task(signs, name="signs of life")
        try:
            async for part in parts:
                await stream.send(part)
            request[WHOLE] = True
        except AppError as error:
            failed = error  # the group would wrap it
        except asyncio.CancelledError:
            if not closes(request):
                raise
            failed = closed(request)
        except RecursionError:
            failed = too_deep()
        except Exception:  # the outer wall of a request whose answer has begun
            log.exception("%s failed", request.path)
            failed = AppError("bug")
        finally:
            beside.cancel()
    if failed is not None:
        if not answer.prepared:
            raise failed  # it is answered with its status
        name, home = request[ASKER].request, request[HOME]
        usual = partial(in_stream, api_of(request.path), request=name, home=home)
        await stream.send((in_words or usual)(failed))
    await end(answer)
    return answer


class _Stream:
    """An answer being sent: parts and signs of life take turns, and the headers go with the first of either."""

    def __init__(self, request: web.Request, answer: web.StreamResponse) -> None:
        self._request, self._answer = request, answer
        self._turn, self._clock = asyncio.Lock(), asyncio.get_running_loop().time
        self._sent_at = self._clock()

    async def send(self, part: bytes) -> None:
        async with self._turn:
            if not self._answer.prepared:
                self._answer.headers.update(from_elsewhere(self._request[ASKER]))
            await write(self._request, self._answer, part)
            self._sent_at = self._clock()

    async def signs(self, sign: bytes, silent_s: float) -> None:
        """Send signs of life while nothing else is sent.

        None is sent before the first part if an upstream may answer: headers name it.
        """
        while sign:
            left_s = self._sent_at + silent_s - self._clock()
            may = self._answer.prepared or not self._request[ASKER].origin.n_asked
            if left_s <= 0 and may:
                await self.send(sign)
            else:
                await asyncio.sleep(left_s if left_s > 0 else silent_s)


def _sign(request: web.Request, content_type: str) -> bytes:
    """Return a sign of life that clients skip. Only event streams have one."""
    if content_type != EVENTS:
        return b""
    is_anthropic = api_of(request.path) is Api.ANTHROPIC
    return event({"type": "ping"}, "ping") if is_anthropic else b": waits\n\n"
