"""The bounded way to the hub's listings: one deadline, one limit of bytes, fixed hosts, nothing told of us."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from app import __version__
from app.catalog.hub_address import Hub, proxy_of, trusting
from app.catalog.hub_limits import Limits
from app.core.errors import AppError, Busy, Unreachable

MAX_ANSWER_BYTES = 16 << 20
SILENCE_SECONDS = 10.0
LOOK_SECONDS = 0.2  # between two looks whether anybody still waits
AGENT = f"poolhouse/{__version__}"


class _Stream(httpx2.SyncByteStream):
    """A body that ends with an error where it is too long or too late."""

    def __init__(self, inner: httpx2.SyncByteStream, source: str, limits: Limits) -> None:
        self._inner, self._source, self._limits = inner, source, limits

    def __iter__(self) -> Iterator[bytes]:
        total = 0
        try:
            for chunk in self._inner:
                total += len(chunk)
                if total > MAX_ANSWER_BYTES:
                    raise Unreachable("hub_answer_long", source=self._source)
                self._limits.left(self._source)
                yield chunk
        except httpx2.TransportError as error:
            raise away(self._source, error) from None

    def close(self) -> None:
        self._inner.close()


class Bounded(httpx2.BaseTransport):
    """A transport that turns every failure into a sentence, so that nothing is tried again behind our back."""

    def __init__(self, hub: Hub, limits: Limits) -> None:
        self._hub, self._limits = hub, limits
        self._inner = httpx2.HTTPTransport(
            verify=trusting(), proxy=proxy_of(hub.endpoint), retries=0
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self._hub.next(self._hub.endpoint, str(request.url))  # a redirect stays on its hosts
        source = self._hub.host
        wait = min(self._limits.left(source), SILENCE_SECONDS)
        request.headers["user-agent"] = AGENT
        request.headers["accept-encoding"] = (
            "identity"  # a packed answer would pass the limit unseen
        )
        request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), wait)
        try:
            answer = self._inner.handle_request(request)
        except httpx2.TransportError as error:
            raise away(source, error) from None
        if answer.status_code == 429:
            raise Busy("hub_busy", source=source)
        if answer.status_code >= 500:
            raise Unreachable("hub_fault", source=source, status=answer.status_code)
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise Unreachable("hub_odd", source=source)
        assert isinstance(answer.stream, httpx2.SyncByteStream)
        answer.stream = _Stream(answer.stream, source, self._limits)
        return answer

    def close(self) -> None:
        self._inner.close()


def away(source: str, error: Exception) -> AppError:
    """The sentence for a line that does not work."""
    if isinstance(error, httpx2.TimeoutException):
        return Unreachable("hub_slow", source=source)
    return Unreachable("hub_away", source=source)


_one_at_a_time = threading.Lock()  # huggingface_hub keeps one client for the whole process


@contextmanager
def spoken_to(hub: Hub, limits: Limits) -> Iterator[None]:
    """While it lasts, huggingface_hub speaks to `hub` through a bounded client."""
    from huggingface_hub import close_session, set_client_factory

    def client() -> httpx2.Client:
        return httpx2.Client(transport=Bounded(hub, limits), follow_redirects=True, max_redirects=5)

    while not _one_at_a_time.acquire(timeout=min(limits.left(hub.host), LOOK_SECONDS)):
        continue  # whether anybody still waits is asked again
    try:
        set_client_factory(client)
        yield
    finally:
        close_session()
        _one_at_a_time.release()
