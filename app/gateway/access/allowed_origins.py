"""The host names and web origins that the owner allowed, and CORS headers for pages from these origins."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from aiohttp import hdrs, web

from app.api import requests
from app.core.errors import BadInput
from app.machine.settings import ApiSettings

MOST_NAMES = 32  # maximum number of host names, and of origins
MOST_CHARACTERS = 253  # maximum length of a host name (RFC 1035)
WITHOUT_HOST = frozenset({"about", "blob", "data", "file", "javascript", "null"})  # their origin is `null`
USUAL_PORTS = {"http": 80, "https": 443}
_LABELS = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,31}")


def host_name(text: str) -> str:
    """Return a host name as it appears in requests: in lower case and without a port. Raises BadInput."""
    typed = text.strip()
    name, port = _split_port(typed)
    try:
        host = _host(name)
    except ValueError:
        raise BadInput("api_host_name", name=typed[:80]) from None
    if port not in ("", None) and not _is_port(port):
        raise BadInput("api_host_name", name=typed[:80])
    return host


def origin(text: str) -> str:
    """Return a web origin as browsers send it: scheme, host, and the port unless it is the default. Raises BadInput."""
    typed = text.strip()
    refused = BadInput("api_origin", origin=typed[:80])
    scheme, mark, rest = typed.partition("://")
    scheme = scheme.lower()
    rest = rest.removesuffix("/")
    if not mark or not _SCHEME.fullmatch(scheme) or scheme in WITHOUT_HOST:
        raise refused
    name, port = _split_port(rest)
    try:
        host = _host(name)
    except ValueError:
        raise refused from None
    if port is None:
        return f"{scheme}://{host}"
    if not _is_port(port):
        raise refused
    usual = USUAL_PORTS.get(scheme) == int(port)
    return f"{scheme}://{host}" if usual else f"{scheme}://{host}:{int(port)}"


def is_allowed_host(header: str, allowed: Collection[str]) -> bool:
    """Return whether a request's Host header names an allowed host.

    Any port is accepted, because a proxy or container may use another one.
    """
    if not allowed:
        return False
    name, _ = _split_port(header)
    return name.lower().removesuffix(".") in allowed


def _split_port(text: str) -> tuple[str, str | None]:
    """Split a text into a host name or bracketed IPv6 address, and the port after it (None if there is none)."""
    end = text.find("]") + 1 if text.startswith("[") else 0
    name, colon, port = text[:end], text[end : end + 1], text[end + 1 :]
    if end and colon in ("", ":"):
        return name, port if colon else None
    name, colon, port = text.partition(":")
    return name, port if colon else None


def _host(name: str) -> str:
    """Return a normalized host name or IPv6 address. Raises ValueError."""
    if name.startswith("[") and name.endswith("]"):
        return f"[{ipaddress.IPv6Address(name[1:-1]).compressed}]"
    lower = name.lower().removesuffix(".")
    if not lower.isascii():
        lower = lower.encode("idna").decode("ascii")  # UnicodeError is a ValueError
    if len(lower) > MOST_CHARACTERS or not _LABELS.fullmatch(lower):
        raise ValueError(name)
    return lower


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 6 and 0 < int(text) < 1 << 16


NO_NAMES: Callable[[], Collection[str]] = frozenset
FOREIGN_HOST = (
    "Poolhouse does not answer by this host name. Ask at the address that `poolhouse api status` shows, "
    "or allow the name: `poolhouse api on --host-name NAME`."
)
FOREIGN_ORIGIN = (
    "Web pages from this origin may not ask Poolhouse. If you trust it, allow it: `poolhouse api on --origin URL`."
)
ALLOWED_ORIGIN: web.RequestKey[str] = web.RequestKey("allowed origin", str)
METHODS = "GET, HEAD, POST"
# response headers that scripts may read
EXPOSED_HEADERS = "X-Request-Id, Request-Id, Retry-After, X-Poolhouse-Upstream"
# how long a browser may cache a preflight; requests from a removed origin are refused regardless
PREFLIGHT_SECONDS = 600
MOST_HEADERS = 2048  # total characters of the header names that a page may ask to send


@dataclass(frozen=True, slots=True)
class Access:
    """The host names and origins that a server accepts. The fields are functions that are called for every request."""

    own_names: Callable[[], Collection[str]]
    host_names: Callable[[], Collection[str]] = NO_NAMES
    origins: Callable[[], Collection[str]] = NO_NAMES

    def accepts_host(self, request: web.Request) -> bool:
        """Return whether the request is addressed to one of our names.

        This protects against DNS rebinding, in which another name leads to our address.
        """
        return request.host in self.own_names() or is_allowed_host(request.host, self.host_names())

    def address_error(self, request: web.Request) -> tuple[int, str] | None:
        """Return the status and text for rejecting a foreign Host or Origin, or None.

        An allowed origin is recorded on the request.
        """
        if not self.accepts_host(request):
            return 421, FOREIGN_HOST
        origins = request.headers.getall(hdrs.ORIGIN, [])
        if not origins:
            return None
        if len(origins) > 1 or origins[0] not in self.origins():  # browsers always write an origin the same way
            return 403, FOREIGN_ORIGIN
        request[ALLOWED_ORIGIN] = origins[0]
        return None


def is_preflight(request: web.Request) -> bool:
    """Return whether this is a CORS preflight request for a page from an allowed origin.

    Browsers send preflight requests without a key.
    """
    asks = hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
    return request.method == hdrs.METH_OPTIONS and asks and ALLOWED_ORIGIN in request


def preflight(request: web.Request) -> web.Response:
    """Return the answer to a preflight request. It reveals nothing about keys or models."""
    headers: dict[str, str] = {
        hdrs.ACCESS_CONTROL_ALLOW_METHODS: METHODS,
        hdrs.ACCESS_CONTROL_MAX_AGE: str(PREFLIGHT_SECONDS),
    }
    headers_asked = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "")
    if headers_asked and len(headers_asked) <= MOST_HEADERS:
        headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = headers_asked
    if request.headers.get("Access-Control-Request-Private-Network") == "true":
        headers["Access-Control-Allow-Private-Network"] = "true"
    return web.Response(status=204, headers=headers)


async def add_cors(request: web.Request, answer: web.StreamResponse) -> None:
    """Allow a page from an allowed origin to read this answer, including errors and streams.

    Credentials are not allowed, because keys are sent in a header and not as a cookie.
    """
    if ALLOWED_ORIGIN in request:
        answer.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = request[ALLOWED_ORIGIN]
        answer.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = EXPOSED_HEADERS
        answer.headers[hdrs.VARY] = hdrs.ORIGIN


def apply_changes(choice: ApiSettings, order: requests.ChangeApi) -> dict[str, tuple[str, ...]]:
    """Return the host names and origins of `choice` after the requested changes. Raises BadInput."""
    return {
        "host_names": _apply(
            choice.host_names,
            map(host_name, order.add_host_names),
            map(host_name, order.remove_host_names),
            lambda name: BadInput("api_host_unknown", name=name[:80]),
        ),
        "origins": _apply(
            choice.origins,
            map(origin, order.add_origins),
            map(origin, order.remove_origins),
            lambda name: BadInput("api_origin_unknown", origin=name[:80]),
        ),
    }


def _apply(
    now: tuple[str, ...], added: Iterable[str], removed: Iterable[str], unknown: Callable[[str], BadInput]
) -> tuple[str, ...]:
    kept = dict.fromkeys((*now, *added))
    for name in removed:
        if name not in kept:
            raise unknown(name)
        del kept[name]
    if len(kept) > MOST_NAMES:
        raise BadInput("api_access_many", most=MOST_NAMES)
    return tuple(kept)
