"""The address where a build looks for updates."""

from __future__ import annotations

from urllib.parse import urlsplit

from app.catalog.hub.hub_address import LOOPBACK
from app.core.errors import BadInput


def update_host(address: str) -> str:
    """Return the host and port of an address of updates. Raises BadInput if the address is not safe."""
    parts = urlsplit(address)
    if not parts.hostname or not (parts.scheme == "https" or parts.hostname in LOOPBACK):
        raise BadInput("update_address", address=address[:200])
    return parts.netloc
