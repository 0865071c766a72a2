"""JSON bodies of the loopback API: decodes requests, names the invalid field in errors, and encodes responses."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

import msgspec
from aiohttp import web

from app.api.plans import Progress
from app.api.requests import Request
from app.api.responses import DoneLine, ErrorResponse, ProgressLine
from app.core import wire_json
from app.core.errors import AppError, BadInput, bug
from app.decoding import decode
from app.network.traffic_limits import whole_body
from app.node.control.guard import MAX_BODY_BYTES, sent_error

log = logging.getLogger(__name__)

Report = Callable[[Progress], None]
PROGRESS_SECONDS = 0.1
UNREAD_SECONDS = 30.0  # a client that reads nothing for this long is considered gone (SAFETY.md 5)


async def body(request: web.Request, kind: type[R]) -> R:
    """Decode the body of `request` as a `kind`. Raises BadInput with the name of the invalid field, TooLong or
    TooSlow."""
    raw = await whole_body(request.content, request.content_length, MAX_BODY_BYTES)
    try:
        return decode(wire_json.replace_lone_surrogates(raw) or b"{}", kind)
    except ValueError as error:
        raise BadInput("bad_request", why=explain_decode_error(str(error))) from None


def answer(value: msgspec.Struct) -> web.Response:
    """Return an API value as a JSON response."""
    return web.json_response(msgspec.to_builtins(value))


def wrong_field(words: str) -> str:
    """Return the missing, unknown or invalid field that a decoding error names, or "" if it names none."""
    match = _MISSING.search(words) or _UNKNOWN.search(words)
    return _below(_where(words), match.group(1)) if match else _where(words)


def _where(words: str) -> str:
    match = _WHERE.search(words)
    return match.group(1) if match else ""


def explain_decode_error(words: str) -> str:
    """Translate the message of a decoding error into plain English. An unrecognized message is returned unchanged."""
    field = wrong_field(words)
    named = field or "the body"
    if match := _BOUND.search(words):
        return f"{named} must {_bound(*match.groups())}"
    if match := _TYPES.search(words):
        return f"{named} must be {_kinds(match.group(1))}, not {_kinds(match.group(2))}"
    if _MISSING.search(words):
        return f"{field} is missing"
    if _UNKNOWN.search(words):
        return f"nothing here is called {field}"
    if match := _CHOICE.search(words):
        return f"{named} cannot be {match.group(1)}"
    if " matching regex " in words:
        return f"{named} has characters that it must not have, or begins with one, or is too long"
    if words.startswith("Number out of range"):
        return f"{named} is too large a number"
    if words.startswith(("JSON is malformed", "Input data was truncated", "'utf-8' codec")):
        where = re.search(r"\(byte \d+\)", words)
        return f"it is not whole and valid JSON{f' {where.group()}' if where else ''}"
    return words


def _bound(kind: str, length: str | None, sign: str, limit: str) -> str:
    if length is None:
        return f"be {_SIGNS[sign]} {limit.removesuffix('.0')}"
    if sign == ">=" and limit == "1":
        return "not be empty"
    return f"be {_SIGNS[sign]} {limit} {'characters' if kind == 'str' else 'entries'} long"


def _kinds(names: str) -> str:
    return " or ".join(_KINDS.get(name, name) for name in names.split(" | "))


def _below(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def hashing_progress(done: int, total: int) -> Progress:
    """Return the progress of hashing a file."""
    return Progress("hashing", None, done, total, "bytes")


async def lines(request: web.Request, work: AsyncGenerator[msgspec.Struct, None]) -> web.StreamResponse:
    """Send each value of `work` as a line of JSON. An AppError becomes the last line."""
    answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    try:
        await answer.prepare(request)
    except ConnectionError:  # the client left while the request waited, as the window does on the next page
        raise asyncio.CancelledError from None
    try:
        async for line in work:
            await _write(request, answer, line)
    except AppError as error:
        await _write(request, answer, ErrorResponse(sent_error(error)))
    except Exception as error:  # the outermost handler of a request whose response has begun
        log.exception("%s failed", request.path)
        await _write(request, answer, ErrorResponse(sent_error(bug(error))))
    await answer.write_eof()
    return answer


async def _write(request: web.Request, answer: web.StreamResponse, line: object) -> None:
    try:
        async with asyncio.timeout(UNREAD_SECONDS):
            await answer.write(msgspec.json.encode(line) + b"\n")
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
        raise asyncio.CancelledError from None


async def with_progress(work: Callable[[Report], Awaitable[T]]) -> AsyncGenerator[ProgressLine | DoneLine[T], None]:
    """Run `work` and yield its progress at most ten times a second, then {"done": result}.

    Closing the generator cancels the work. `work` may report from any thread.
    """
    loop = asyncio.get_running_loop()
    news: asyncio.Queue[ProgressLine | None] = asyncio.Queue()
    last = [0.0]
    closed = False

    def report(progress: Progress) -> None:
        whole = progress.done == progress.total
        if whole or time.monotonic() - last[0] >= PROGRESS_SECONDS:
            last[0] = time.monotonic()
            loop.call_soon_threadsafe(news.put_nowait, ProgressLine(progress))

    async with asyncio.TaskGroup() as group:
        task = group.create_task(_settled(work(report), news), name="long work")
        try:
            while (line := await news.get()) is not None:
                yield line
        except GeneratorExit:  # a TaskGroup would wrap this exception
            closed = True
        finally:
            task.cancel()
    if closed:
        return
    result = task.result()
    if isinstance(result, AppError):
        raise result
    yield DoneLine(result)


async def _settled(work: Awaitable[T], news: asyncio.Queue[ProgressLine | None]) -> T | AppError:
    """Return the result of `work`, or its AppError as a value, because a TaskGroup would wrap the exception."""
    try:
        return await work
    except AppError as error:
        return error
    finally:
        news.put_nowait(None)


async def stream(request: web.Request, work: AsyncGenerator[msgspec.Struct, None]) -> web.StreamResponse:
    """Send the values of `work` as lines of JSON. Always close `work` afterward."""
    async with aclosing(work) as closing:
        return await lines(request, closing)


R = TypeVar("R", bound=Request)
T = TypeVar("T")

_WHERE = re.compile(r" - at (?:`key` in )?`\$\.?([^`]*)`$")
_BOUND = re.compile(r"Expected `(\w+)`( of length)? (<=|>=|<|>) (-?[\d.]+)")
_TYPES = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_MISSING = re.compile(r"Object missing required field `([^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
_CHOICE = re.compile(r"Invalid enum value (.+?)(?: - at |$)")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
}
_SIGNS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
