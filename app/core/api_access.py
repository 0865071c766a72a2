"""Host names and web origins that the owner allows to reach the Chat API: parsed and compared. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

from app.core.errors import BadInput

MOST_NAMES = 32  # host names, and as many origins
MOST_CHARACTERS = 253  # of a host name (RFC 1035)
OFFERED_HOST = "host.docker.internal"  # what a container of Docker Desktop calls this computer
WITHOUT_HOST = frozenset({"about", "blob", "data", "file", "javascript", "null"})  # their origin is `null`
USUAL_PORTS = {"http": 80, "https": 443}
_LABELS = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,31}")


def host_name(text: str) -> str:
    """A host name as requests carry it, lower case and without a port. Raises BadInput."""
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
    """A web origin as browsers send it: scheme, host, and the port if it isn't the usual one. Raises BadInput."""
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
    """Return whether a request's Host header names an allowed host. The port may differ: a proxy or container may use
    another."""
    if not allowed:
        return False
    name, _ = _split_port(header)
    return name.lower().removesuffix(".") in allowed


def _split_port(text: str) -> tuple[str, str | None]:
    """A name or a bracketed IPv6 address, and what follows its colon."""
    end = text.find("]") + 1 if text.startswith("[") else 0
    name, colon, port = text[:end], text[end : end + 1], text[end + 1 :]
    if end and colon in ("", ":"):
        return name, port if colon else None
    name, colon, port = text.partition(":")
    return name, port if colon else None


def _host(name: str) -> str:
    """Raises ValueError."""
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
