"""Parsing of request bodies, and streaming of answers over HTTP.

An error before the first part determines the status. A later error ends the stream in the format of its API.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import TypeVar

import msgspec
from aiohttp import web

from app.core.errors import AppError, BadInput
from app.decoding import decode
from app.gateway.access.auth import BODY, CALLER, HOME_OPTION, id_headers, upstream_headers
from app.gateway.answer_types import Ping
from app.gateway.error_responses import ApiDialect, api_of, nested_too_deeply, stream_error
from app.gateway.open_requests import COMPLETE, closing_error, finish, is_closing, write
from app.node.control.json_bodies import explain_decode_error, wrong_field

log = logging.getLogger(__name__)

S = TypeVar("S", bound=msgspec.Struct)
FLOAT = re.compile("Expected `int.*, got `float`")
EVENTS, NDJSON = "text/event-stream", "application/x-ndjson"
# Prevents caches and nginx, which buffers responses, from delaying a stream.
UNBUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
# Maximum number of lists, objects and fields in a body, because decoding it blocks all other requests.
MOST_PARTS = 1 << 19
SILENT_SECONDS = 20.0  # time after which a keep-alive is sent; Node's fetch gives up after 300 s of silence


def read(request: web.Request, kind: type[S]) -> S:
    """Return the request's body, decoded as `kind`. Raises BadInput with the name of the invalid field.

    Integers may be written as 40.0, as some programs do.
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
        raise BadInput("bad_request", why=explain_decode_error(str(error)), field=wrong_field(str(error))) from None
    except RecursionError:
        raise nested_too_deeply() from None


def json_response(answer: object, status: int = 200) -> web.Response:
    """Return a response with an answer as JSON.

    It is encoded by msgspec, because Python's own encoder could block all streams of this node for seconds. Numbers
    that JSON lacks become null.
    """
    body = msgspec.json.encode(answer)
    # some clients assume Latin-1 where no charset is named
    return web.Response(body=body, status=status, content_type="application/json", charset="utf-8")


def event(data: object) -> bytes:
    """Return a server-sent event. It is named by the tag of `data`, if `data` is a tagged struct."""
    tag = data.__struct_config__.tag if isinstance(data, msgspec.Struct) else None
    head = f"event: {tag}\n".encode() if tag else b""
    return b"%sdata: %s\n\n" % (head, msgspec.json.encode(data))


async def send(
    request: web.Request,
    content_type: str,
    parts: AsyncGenerator[bytes, None],
    silent_s: float = SILENT_SECONDS,
    encode_error: Callable[[AppError], bytes] | None = None,
) -> web.StreamResponse:
    """Send the parts as they arrive. If the client disconnects, `parts` is closed too, which cancels the answer.

    silent_s: how long the stream may be silent before a keep-alive is sent.
    encode_error: encodes an error if its encoding depends on what was sent before.
    """
    answer = web.StreamResponse(headers=UNBUFFERED | id_headers(request))
    answer.content_type = content_type
    stream = _Stream(request, answer)
    failed: AppError | None = None
    async with aclosing(parts), asyncio.TaskGroup() as group:
        keep_alive = stream.keep_alive(_keep_alive_part(request, content_type), silent_s)
        keep_alive_task = group.create_task(keep_alive, name="keep alive")
        try:
            async for part in parts:
                await stream.send(part)
            request[COMPLETE] = True
        except AppError as error:
            failed = error  # the group would wrap it
        except asyncio.CancelledError:
            if not is_closing(request):
                raise
            failed = closing_error(request)
        except RecursionError:
            failed = nested_too_deeply()
        except Exception:  # the outer wall of a request whose answer has begun
            log.exception("%s failed", request.path)
            failed = AppError("bug")
        finally:
            keep_alive_task.cancel()
    if failed is not None:
        if not answer.prepared:
            raise failed  # the error gets a response with its own status
        name, home = request[CALLER].request_id, request[HOME_OPTION]
        usual = partial(stream_error, api_of(request.path), request=name, home=home)
        await stream.send((encode_error or usual)(failed))
    await finish(answer)
    return answer


class _Stream:
    """An answer being sent.

    Parts and keep-alive messages are sent one at a time. The headers precede the first of them.
    """

    def __init__(self, request: web.Request, answer: web.StreamResponse) -> None:
        self._request, self._answer = request, answer
        self._turn, self._clock = asyncio.Lock(), asyncio.get_running_loop().time
        self._sent_at = self._clock()

    async def send(self, part: bytes) -> None:
        async with self._turn:
            if not self._answer.prepared:
                self._answer.headers.update(upstream_headers(self._request[CALLER]))
            await write(self._request, self._answer, part)
            self._sent_at = self._clock()

    async def keep_alive(self, comment: bytes, silent_s: float) -> None:
        """Send `comment` whenever nothing else has been sent for `silent_s`.

        If an upstream may answer, nothing is sent before the first part, because the headers must name the
        upstream.
        """
        while comment:
            left_s = self._sent_at + silent_s - self._clock()
            may_start = self._answer.prepared or not self._request[CALLER].origin.n_upstreams_tried
            if left_s <= 0 and may_start:
                await self.send(comment)
            else:
                await asyncio.sleep(left_s if left_s > 0 else silent_s)


def _keep_alive_part(request: web.Request, content_type: str) -> bytes:
    """Return a message that clients skip, or b"" if the stream's format has none."""
    if content_type != EVENTS:
        return b""
    is_anthropic = api_of(request.path) is ApiDialect.ANTHROPIC
    return event(Ping()) if is_anthropic else b": waits\n\n"
