"""Builds and checks URLs on the model hub: its endpoint, redirects, and the names of repositories and files."""

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
HUB_HOSTS = ("huggingface.co", "hf.co")  # with all their subdomains, such as those of the stores for large files
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
MAX_URL = 8192  # signed URLs are long

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FILE = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._+ -]{0,199}/){0,4}[A-Za-z0-9][A-Za-z0-9._+ -]{0,199}")
MAIN = "main"


@dataclass(frozen=True, slots=True)
class Hub:
    """A model hub: Hugging Face, or a mirror selected by the environment variable `HF_ENDPOINT`."""

    endpoint: str = HUB

    @classmethod
    def of(cls, environ: Mapping[str, str] = os.environ) -> Hub:
        """Return the hub that the environment selects. Raises BadInput if its URL is unsafe."""
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
        """The host name that the user sees, such as `huggingface.co`."""
        return urlsplit(self.endpoint).netloc

    @property
    def outage_codes(self) -> tuple[str, str]:
        """The reason codes for an unreachable hub: one while it is retried, and one after the last attempt."""
        if self.endpoint == HUB:
            return "hub_held_up", "hub_unreached"
        return "hub_mirror_held_up", "hub_mirror_unreached"

    def page(self, repository: str) -> str:
        return f"{self.endpoint}/{repository}"

    def file(self, repository: str, revision: str, file: str) -> str:
        """Return the URL of a file. The names must already have been checked."""
        return f"{self.endpoint}/{repository}/resolve/{quote(revision, safe='')}/{quote(file)}"

    def is_own(self, url: str) -> bool:
        """Return whether a URL may receive the access token. It must have the hub's scheme, host and port."""
        here, there = urlsplit(self.endpoint), urlsplit(url)
        return (here.scheme, here.hostname, here.port) == (there.scheme, there.hostname, there.port)

    def next(self, url: str, location: str) -> str:
        """Return the target of a redirect. Raises Refused if it does not use HTTPS or is not on one of the hub's
        hosts."""
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


def check_file_names(repository: str, file: str, revision: str | None) -> tuple[str, str, str]:
    """Check and return the names of a file on the hub. The default revision is `main`. Raises BadInput."""
    if not _REPOSITORY.fullmatch(repository):
        raise BadInput("hub_name_odd", name=repository[:100])
    if not _FILE.fullmatch(file) or not file.casefold().endswith(".gguf"):
        raise BadInput("hub_name_odd", name=file[:100])
    if not _REVISION.fullmatch(revision or MAIN):
        raise BadInput("hub_name_odd", name=str(revision)[:100])
    return repository, file, revision or MAIN


def check_repository(repository: str) -> str:
    if not _REPOSITORY.fullmatch(repository):
        raise BadInput("hub_name_odd", name=repository[:100])
    return repository


def proxy_of(url: str) -> str | None:
    """Return the system's proxy for a URL, or None. No proxy is used for this computer itself."""
    parts = urlsplit(url)
    if parts.hostname in LOOPBACK or proxy_bypass(parts.hostname or ""):
        return None
    proxy = getproxies().get(parts.scheme)
    return proxy if proxy and "://" in proxy else None


def system_tls_context() -> ssl.SSLContext:
    """Return a TLS context that trusts the system's certificate store instead of a bundled one."""
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
