"""The checks that every request to the loopback API must pass before a route handles it (SAFETY.md 7)."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable, Collection

import msgspec
from aiohttp import web

from app.api.responses import ErrorResponse, SentError
from app.core.errors import (
    AppError,
    BadInput,
    Busy,
    Damaged,
    DoesNotFit,
    Refused,
    StageFailed,
    StageLost,
    Unreachable,
    bug,
)
from app.core.reasons import said
from app.network.traffic_limits import TooLong, TooSlow

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 8 << 20
MAX_OPEN = 32  # limit of concurrent requests with the token, or with the same key (SAFETY.md 7)
# Exempt from the limit, so that owners can always get their memory back.
ALWAYS = frozenset({"/lending", "/lending/pause", "/unload", "/shutdown"})
USUAL_RETRY_S = 2
STATUS: dict[type[AppError], int] = {
    BadInput: 400,
    Refused: 403,
    DoesNotFit: 409,
    Damaged: 422,
    Busy: 429,
    Unreachable: 502,
    StageFailed: 422,
    StageLost: 503,
}
FOREIGN_HOST = "Poolhouse does not answer by this host name. Ask at the address that `poolhouse api status` shows."
FOREIGN_ORIGIN = "Web pages may not ask Poolhouse, and an Origin is a page's. Ask from a program, without that header."
COMPRESSED = "Compressed bodies are not read. Send this one without Content-Encoding."
TOO_LARGE = "The body is larger than 8 MiB. Send less in one request."
TOO_SLOW = "The body came too slowly. Send it again, all of it at once."
OTHER_DOOR = (
    "The token of runtime.json is missing or wrong. This port is for Poolhouse's own window and commands; "
    "`poolhouse api status` says where other programs ask."
)
GARBLED = "The body is not as its headers say. Send it again, with its own length and encoding."
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def sent_error(error: AppError) -> SentError:
    """Convert an error for the body of a response or the last line of a stream."""
    reason = error.reason
    return SentError(type(error).__name__, reason.code, reason.facts, said(error))


def refuse(status: int, code: str, message: str) -> web.Response:
    body = {"error": {"kind": "Refused", "code": code, "facts": {}, "message": message}}
    return web.json_response(body, status=status)


def _parted(answer: web.Response) -> web.Response:
    """Make the response close the connection. Used for clients without access."""
    answer.force_close()
    return answer


def loopback_hosts(port: int) -> set[str]:
    """Return the Host header values with which programs on this computer may address a loopback port."""
    return {f"127.0.0.1:{port}", f"[::1]:{port}", f"localhost:{port}"}


def origin_problem(request: web.Request, names: Collection[str]) -> tuple[int, str] | None:
    """Return the HTTP status and message with which to refuse a request, or None if it may proceed.

    A request is refused if its host name is foreign or if it comes from a web page.
    """
    if request.host not in names:
        return 421, FOREIGN_HOST
    if "Origin" in request.headers:
        return 403, FOREIGN_ORIGIN
    return None


CODES = {421: "foreign_host", 403: "foreign_origin"}


def refusal_of(request: web.Request, token: str, port: int) -> web.Response | None:
    """Return the response that refuses a request, or None if the request is allowed.

    The origin of a request is checked before its token, as SAFETY.md requires.
    """
    if problem := origin_problem(request, loopback_hosts(port)):
        status, words = problem
        return _parted(refuse(status, CODES[status], words))
    if request.headers.get("Content-Encoding"):
        return _parted(refuse(415, "encoded_body", COMPRESSED))
    # the header may contain any bytes
    header = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
    if not hmac.compare_digest(header, f"Bearer {token}".encode()):
        return _parted(refuse(401, "wrong_token", OTHER_DOOR))
    if request.method in ("POST", "PUT") and request.content_type != "application/json":
        return refuse(415, "not_json", "Send the body as application/json.")
    if (request.content_length or 0) > MAX_BODY_BYTES:
        return refuse(413, "body_too_large", TOO_LARGE)
    return None


def guard(
    token: str, port: Callable[[], int], on_request: Callable[[web.Request], None] = lambda _: None
) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware of the loopback API. It checks requests and turns errors into responses.

    on_request: called for each request as soon as its headers have arrived.
    """

    n_open = 0

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        nonlocal n_open
        on_request(request)
        if answer := refusal_of(request, token, port()):
            return answer
        if n_open >= MAX_OPEN and request.path not in ALWAYS:
            return _refusal(Busy("control_full", most=MAX_OPEN))
        n_open += 1
        try:
            return await handler(request)
        except AppError as error:
            return _refusal(error)
        except web.RequestPayloadError:
            return refuse(400, "body_garbled", GARBLED)
        except TooLong:
            return refuse(413, "body_too_large", TOO_LARGE)
        except TooSlow:
            return await send_and_close(request, refuse(408, "body_too_slow", TOO_SLOW))
        except web.HTTPException:
            raise
        except Exception as error:  # the outermost handler of a request
            log.exception("%s %s failed", request.method, request.path)
            return web.json_response(msgspec.to_builtins(ErrorResponse(sent_error(bug(error)))), status=500)
        finally:
            n_open -= 1

    return checked


async def send_and_close(request: web.Request, answer: web.StreamResponse) -> web.StreamResponse:
    """Send a response and close the connection without waiting for the remainder of a slow request body."""
    await answer.prepare(request)
    await answer.write_eof()
    request.protocol.force_close()
    return answer


def retry_s(error: AppError) -> int:
    """Return the value of the Retry-After header, in seconds."""
    return max(1, round(error.reason.number("seconds") or USUAL_RETRY_S))


def _refusal(error: AppError) -> web.Response:
    retry = {"Retry-After": str(retry_s(error))} if isinstance(error, Busy) else {}
    body = msgspec.to_builtins(ErrorResponse(sent_error(error)))
    return web.json_response(body, status=STATUS.get(type(error), 500), headers=retry)
