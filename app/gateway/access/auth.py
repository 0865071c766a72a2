"""The checks that every request to the Chat API must pass before it reaches a route (SAFETY.md 7), and its log line."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from typing import Protocol

from aiohttp import web

from app.core import wire_json
from app.core.errors import AppError, Busy
from app.core.log_redaction import log_extra
from app.core.scheduler.requester import KEYLESS, Requester
from app.gateway.access.allowed_origins import Access, is_preflight, preflight
from app.gateway.access.decompression import ENCODINGS, BadEncoding, encoding_error, read_body
from app.gateway.answer_service import Caller
from app.gateway.error_responses import ApiDialect, api_of, error_body, format_error, nested_too_deeply, status_of
from app.gateway.metrics import Metrics
from app.gateway.open_requests import COMPLETE, OpenRequests, send_large
from app.gateway.upstreams.upstreams import FORWARDED_BY, MOST_FORWARDS
from app.machine.paths import with_home
from app.machine.secret_stores import ApiKeys
from app.network.traffic_limits import TooLong, TooSlow
from app.node.control.guard import GARBLED, MAX_BODY_BYTES, MAX_OPEN, TOO_LARGE, TOO_SLOW, retry_s, send_and_close

NO_KEY_SHOWN = (
    "The request shows no API key. Send it in the header `Authorization: Bearer KEY`, or `X-Api-Key: KEY`; "
    "`poolhouse api key` shows it."
)
WRONG_KEY = (
    "Invalid API key: it was typed wrongly or cut short, was replaced, or belongs to another Poolhouse. "
    "`poolhouse api key` shows the valid one."
)
CLOSED_HERE = "Programs on other computers may not use this pool. Its owner can allow it: `poolhouse api on --lan`."
# Ollama's routes that change models
MODEL_CHANGES = frozenset({"/api/pull", "/api/create", "/api/copy", "/api/delete", "/api/push"})

log = logging.getLogger(__name__)
NO_KEY = "(no key)"  # the caller's name if no key is needed
HEALTH = ("/health", "/v1/health")  # reveals only that the server is up
ID = "X-Request-Id"
ANTHROPIC_ID = "Request-Id"  # the same ID, in the header that Anthropic's clients read
FORM = "application/x-www-form-urlencoded"
NO_JSON = "Send the body as JSON, and say so: with the header `Content-Type: application/json`."
UPSTREAM = "X-Poolhouse-Upstream"  # names the upstream if the pool did not answer
PROGRAM = "X-Poolhouse-Program"  # distinguishes a guest's programs by the pseudonyms that its node assigns
_VALID_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
BODY = web.RequestKey("body", bytes)
CALLER = web.RequestKey("asker", Caller)
# The option to add to commands named in errors. Empty for callers without a key or on other computers, since it would
# reveal a folder.
HOME_OPTION = web.RequestKey("home", str)


def not_found_text(method: str, path: str, known: Collection[str]) -> str:
    """Return the text of a 404 response for an unknown path. `known` contains the existing paths."""
    begun = f"There is nothing at {method} {path[:100]}"
    if path in MODEL_CHANGES:
        cure = "`poolhouse pull NAME` or `poolhouse import FILE.gguf` adds one"
        return f"{begun}: programs change no models here. {cure}."
    parts = [part for part in path.split("/") if part]
    bare = "/" + "/".join(parts)
    rest = "/" + "/".join(part for part in parts if part != "v1")
    for meant in (bare, "/v1" + rest, rest):
        if meant != "/" and meant in known:
            of_base = (
                ""
                if meant == bare
                else (" An address for OpenAI's clients ends with /v1, one for Anthropic's or Ollama's without it.")
            )
            return f"{begun}, but at {meant}.{of_base}"
    return f"{begun}. GET /openapi.json lists what there is."


class Authenticator(Protocol):
    """An identity check for one kind of caller."""

    def address_error(self, request: web.Request) -> tuple[int, str] | None:
        """Return the status and text for rejecting a forbidden Host or Origin, or None."""

    def caller_name(self, request: web.Request) -> str | None:
        """Return the name under which the caller is limited and logged, or None if the caller is unknown."""

    def requester(self, request: web.Request, key: str) -> Requester:
        """Return the caller as displayed to the user in the list of answers."""

    def accepts_form_type(self, request: web.Request) -> bool:
        """Return whether the body may be JSON even if its Content-Type says otherwise."""


class KeyAuthenticator:
    """The identity check for programs. Requests must be addressed to an allowed host name and have a valid key."""

    def __init__(
        self,
        keys: ApiKeys,
        access: Access,
        ollama_open: Callable[[], bool],
        *,
        tells_health: bool,
        is_open: Callable[[], bool] = lambda: True,
    ) -> None:
        """Check requests of programs.

        is_open: whether programs may use this server. The server on the LAN may be open for phones alone.
        """
        self._keys, self._access, self._ollama_open = keys, access, ollama_open
        self._tells_health, self._is_open = tells_health, is_open

    def address_error(self, request: web.Request) -> tuple[int, str] | None:
        if error := self._access.address_error(request):
            return error
        return None if self._is_open() else (403, CLOSED_HERE)

    def caller_name(self, request: web.Request) -> str | None:
        key = self._keys.owner(_given_key(request))
        if key is None and api_of(request.path) is ApiDialect.OLLAMA and self._ollama_open():
            return NO_KEY
        if key is None and self._tells_health and request.path in HEALTH:
            return NO_KEY
        return key

    def requester(self, request: web.Request, key: str) -> Requester:
        return KEYLESS if key == NO_KEY else Requester("program", key)

    def accepts_form_type(self, request: web.Request) -> bool:
        """Return whether this request calls Ollama's API with a key.

        Ollama's examples use `curl -d`, which declares a form. A web page can also send a form, but it cannot add a
        header with a key unless CORS allows its origin.
        """
        if api_of(request.path) is not ApiDialect.OLLAMA or self._keys.owner(bearer(request)) is None:
            return False
        return "Content-Type" not in request.headers or request.content_type == FORM


class Auth:
    """The middleware that admits requests and limits the number of open requests per key.

    It also formats every error for the API that was called.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        metrics: Metrics,
        on_arrival: Callable[[web.Request], None],
        max_open: Callable[[str], int] = lambda _: MAX_OPEN,
        opened: Counter[str] | None = None,
        home: str = "",
        on_admission: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._authenticator, self._metrics, self._on_arrival, self._on_admission = (
            authenticator,
            metrics,
            on_arrival,
            on_admission,
        )
        self._max_open, self._home = max_open, home
        self._open = Counter[str]() if opened is None else opened
        self.open_requests = OpenRequests()

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._on_arrival(request)
        sent_id = request.headers.get(ID, "")
        name = sent_id if _VALID_ID.fullmatch(sent_id) else f"req_{secrets.token_hex(12)}"
        request[CALLER], request[HOME_OPTION] = Caller("", name), ""
        begun, answer = time.monotonic(), None
        try:
            answer = await self._admitted(request, handler)
            return answer if answer.prepared else _with_ids(request, answer)
        finally:
            path = await _route_pattern(request)
            status = answer.status if answer else 200 if COMPLETE in request else 499
            self._note(request, path, status, time.monotonic() - begun)

    async def _admitted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if objection := self._objection(request):
            return objection
        caller = request[CALLER]
        self._on_admission(request.remote or "")
        if self._open[caller.key] >= (most := self._max_open(caller.key)):
            words = f"This key may have no more requests open than {most}. Wait until one of them is answered."
            return refusal(request, 429, words, retry_after_s=1)
        self._open[caller.key] += 1
        try:
            async with self.open_requests.until_closed(request, caller.key):
                if request.method == "POST":
                    await _send_continue(request)
                    body = await read_body(request, MAX_BODY_BYTES)
                    request[BODY] = wire_json.replace_lone_surrogates(body)
                answer = await handler(request)
            return answer if answer.prepared else await send_large(request, _with_ids(request, answer))
        except (web.RequestPayloadError, BadEncoding):
            return _closing(refusal(request, 400, GARBLED))
        except TooLong:
            return refusal(request, 413, TOO_LARGE)
        except TooSlow:
            answer = _with_ids(request, refusal(request, 408, TOO_SLOW))
            return await send_and_close(request, answer)
        except AppError as error:
            return _error_response(request, error)
        except web.HTTPMethodNotAllowed as error:
            allowed = ", ".join(sorted(error.allowed_methods))
            words = f"{request.path[:100]} answers {allowed}, not {request.method}."
            answer = refusal(request, error.status, words)
            answer.headers["Allow"] = allowed
            return answer
        except web.HTTPException as error:
            known = {resource.canonical for resource in request.app.router.resources()}
            return refusal(request, error.status, not_found_text(request.method, request.path, known))
        except RecursionError:  # a value that was just shallow enough to be parsed may be too deep to be encoded
            return _error_response(request, nested_too_deeply())
        except Exception:  # the outer wall of a request
            log.exception("%s failed", request.path)
            return _error_response(request, AppError("bug"))
        finally:
            self._open[caller.key] -= 1
            self._open += Counter()  # remove keys without open requests

    def _objection(self, request: web.Request) -> web.Response | None:
        """Return the response that rejects this request, or None.

        The address is checked before the key (SAFETY.md 7).
        """
        if address_error := self._authenticator.address_error(request):
            return _closing(refusal(request, *address_error))
        if is_preflight(request):
            return preflight(request)
        if unread := encoding_error(request.headers.getall("Content-Encoding", [])):
            answer = _closing(refusal(request, 415, unread))
            answer.headers["Accept-Encoding"] = ", ".join(ENCODINGS)
            return answer
        key = self._authenticator.caller_name(request)
        if key is None:
            words = WRONG_KEY if _given_key(request) else NO_KEY_SHOWN
            return _closing(refusal(request, 401, words))
        request[HOME_OPTION] = "" if key == NO_KEY else self._home
        sent_program = request.headers.get(PROGRAM, "")
        program = sent_program if _VALID_ID.fullmatch(sent_program) else ""
        marks = request.headers.get(FORWARDED_BY, "").split(",")[:MOST_FORWARDS]
        request[CALLER] = replace(
            request[CALLER],
            key=key,
            program=program,
            requester=self._authenticator.requester(request, key),
            forwarded_by=tuple(mark for mark in marks if _VALID_ID.fullmatch(mark)),
        )
        if request.method == "POST" and not (_is_json(request) or self._authenticator.accepts_form_type(request)):
            return refusal(request, 415, NO_JSON)
        if (request.content_length or 0) > MAX_BODY_BYTES:
            return refusal(request, 413, TOO_LARGE)
        return None

    def _note(self, request: web.Request, path: str, status: int, seconds: float) -> None:
        """Count and log a request with the name of its key, its path and its outcome.

        Neither the request's text nor the key itself is logged.
        """
        self._metrics.requests.labels(path=path, status=str(status)).inc()
        caller = request[CALLER]
        facts = log_extra(
            caller.request_id,
            method=request.method,
            path=path,
            key=caller.key,
            status=status,
            seconds=round(seconds, 6),
        )
        log.info("%s %s %s of %s: %d in %.3f s", caller.request_id, request.method, path,
                 caller.key or "a stranger", status, seconds, extra=facts)  # fmt: skip


def defer_bodies(routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
    """Return the routes, changed so that `100 Continue` is sent only after a request has passed the checks."""

    async def not_yet(_: web.Request) -> None:
        return None

    return [
        web.RouteDef(route.method, route.path, route.handler, route.kwargs | {"expect_handler": not_yet})
        for route in routes
    ]


async def _route_pattern(request: web.Request) -> str:
    """Return the route's path pattern, even if the method is wrong.

    The path itself must not be used, because strangers could invent any number of labels for metrics.
    """
    if (resource := request.match_info.route.resource) is not None:
        return resource.canonical
    if isinstance(request.match_info.http_exception, web.HTTPMethodNotAllowed):
        for candidate in request.app.router.resources():
            if (await candidate.resolve(request))[1]:
                return candidate.canonical
    return "(none)"


async def _send_continue(request: web.Request) -> None:
    """Send `100 Continue` to a client that waits for it before sending the body."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # do not count this as the start of the answer


def _closing(answer: web.Response) -> web.Response:
    """Make the answer close the connection, because the client has no access."""
    answer.force_close()
    return answer


def _with_ids(request: web.Request, answer: web.StreamResponse) -> web.StreamResponse:
    """Add the request's ID to the headers, and the name of the upstream if one answered."""
    answer.headers.update(id_headers(request) | upstream_headers(request[CALLER]))
    return answer


def id_headers(request: web.Request) -> dict[str, str]:
    """Return the headers with the request's ID, named as clients of the called API expect."""
    name = request[CALLER].request_id
    return {ID: name} | ({ANTHROPIC_ID: name} if api_of(request.path) is ApiDialect.ANTHROPIC else {})


def upstream_headers(caller: Caller) -> dict[str, str]:
    """Return the header that names the upstream, if one answered."""
    return {UPSTREAM: caller.origin.upstream} if caller.origin.upstream else {}


def refusal(request: web.Request, status: int, words: str, retry_after_s: int | None = None) -> web.Response:
    """Return an error response in the format of the API that was called."""
    code = "unknown_url" if status == web.HTTPNotFound.status_code else None  # distinct from an unknown model
    words = with_home(words, request[HOME_OPTION])
    body = format_error(api_of(request.path), status, words, request[CALLER].request_id, code)
    headers = {"Retry-After": str(retry_after_s)} if retry_after_s else {}
    return web.json_response(body, status=status, headers=headers)


def _error_response(request: web.Request, error: AppError) -> web.Response:
    headers = {"Retry-After": str(retry_s(error))} if isinstance(error, Busy) else {}
    body = error_body(api_of(request.path), error, request[CALLER].request_id, request[HOME_OPTION])
    return web.json_response(body, status=status_of(error), headers=headers)


def _given_key(request: web.Request) -> str:
    """Return the key from the header that clients of OpenAI and Ollama use, or else from Anthropic's header."""
    return bearer(request) or request.headers.get("X-Api-Key", "")


def bearer(request: web.Request) -> str:
    """Return the key in the header `Authorization: Bearer KEY`, or ""."""
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _is_json(request: web.Request) -> bool:
    return request.content_type == "application/json"
