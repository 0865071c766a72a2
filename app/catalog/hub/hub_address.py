"""The address of the hub, the hosts it may redirect to, and names that are safe in paths."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from app.core.errors import BadInput, Reason, Refused

HUB = "https://huggingface.co"
HUB_HOSTS = ("huggingface.co", "hf.co")  # including all subdomains, such as its stores of large files
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
MAX_URL = 8192  # signed addresses are long

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FILE = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._+ -]{0,199}/){0,4}[A-Za-z0-9][A-Za-z0-9._+ -]{0,199}")
MAIN = "main"


@dataclass(frozen=True, slots=True)
class Hub:
    """A model hub. `HF_ENDPOINT` selects another one than Hugging Face, such as a mirror."""

    endpoint: str = HUB

    @classmethod
    def of(cls, environ: Mapping[str, str] = os.environ) -> Hub:
        """Return the hub of this process. Raises BadInput for an unsafe address."""
        endpoint = environ.get("HF_ENDPOINT", "").strip().rstrip("/") or HUB
        try:
            parts = urlsplit(endpoint)
            safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
            named = bool(parts.hostname) and parts.port != 0  # an invalid port also raises ValueError
            good = safe and named and not parts.username and not parts.query
        except ValueError:
            good = False
        if not good:
            raise BadInput("hub_address_odd", address=endpoint[:200])
        return cls(endpoint)

    @property
    def host(self) -> str:
        """The host name shown to people: `huggingface.co`."""
        return urlsplit(self.endpoint).netloc

    @property
    def away_codes(self) -> tuple[str, str]:
        """The codes of the sentences for a hub that cannot be reached: for now, and after many attempts."""
        if self.endpoint == HUB:
            return "hub_held_up", "hub_unreached"
        return "hub_mirror_held_up", "hub_mirror_unreached"

    def page(self, repository: str) -> str:
        return f"{self.endpoint}/{repository}"

    def file(self, repository: str, revision: str, file: str) -> str:
        """Return the address of a file. The names must have been checked."""
        return f"{self.endpoint}/{repository}/resolve/{quote(revision, safe='')}/{quote(file)}"

    def is_own(self, url: str) -> bool:
        """Return whether an access token may be sent to this address: the hub's own scheme, host and port."""
        here, there = urlsplit(self.endpoint), urlsplit(url)
        return (here.scheme, here.hostname, here.port) == (there.scheme, there.hostname, there.port)

    def next(self, url: str, location: str) -> str:
        """Return the target of a redirect. Raises Refused if it is not https or on another host than the hub's."""
        there = urljoin(url, location)
        try:
            parts = urlsplit(there)
            host = (parts.hostname or "").casefold()
            odd = parts.username is not None or parts.port == 0 or len(there) > MAX_URL
        except ValueError:
            host, odd = "", True
        if odd or not self._may(parts.scheme, host):
            raise Refused("hub_redirect_odd", source=self.host, host=host[:100] or Reason("nowhere"))
        return there

    def _may(self, scheme: str, host: str) -> bool:
        own = (urlsplit(self.endpoint).hostname or "").casefold()
        if own in LOOPBACK:  # a mirror on this computer
            return host in LOOPBACK
        hosts = (own, *HUB_HOSTS)
        return scheme == "https" and any(host == domain or host.endswith(f".{domain}") for domain in hosts)


def checked(repository: str, file: str, revision: str | None) -> tuple[str, str, str]:
    """Return the repository, file and revision of a file on the hub. Raises BadInput for invalid names."""
    if not _REPOSITORY.fullmatch(repository):
        raise BadInput("hub_name_odd", name=repository[:100])
    if not _FILE.fullmatch(file) or not file.casefold().endswith(".gguf"):
        raise BadInput("hub_name_odd", name=file[:100])
    if not _REVISION.fullmatch(revision or MAIN):
        raise BadInput("hub_name_odd", name=str(revision)[:100])
    return repository, file, revision or MAIN


def checked_repository(repository: str) -> str:
    if not _REPOSITORY.fullmatch(repository):
        raise BadInput("hub_name_odd", name=repository[:100])
    return repository


def proxy_of(url: str) -> str | None:
    """Return the system's proxy for an address, or None. This computer itself is never reached through a proxy."""
    parts = urlsplit(url)
    if parts.hostname in LOOPBACK or proxy_bypass(parts.hostname or ""):
        return None
    proxy = getproxies().get(parts.scheme)
    return proxy if proxy and "://" in proxy else None


def trusting() -> ssl.SSLContext:
    """Return a TLS context that uses this system's certificate store, not a bundled copy."""
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
