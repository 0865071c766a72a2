"""Why the hub does not answer, in words, and when it is time to say so: a person is not left to guess."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import aiohttp

from app.core.errors import AppError, Reason, Unreachable

SILENT_SECONDS = 4.0  # without an answer; then it is told: a person gladly waits for five
NOTHING_ANSWERS = "nothing answers"


class Place(Protocol):
    """Where files are asked for: a hub, or a machine of the household."""

    @property
    def host(self) -> str:
        """What people are told."""
        ...

    @property
    def away_codes(self) -> tuple[str, str]:
        """Of what is said while it is asked again, and of what is said in the end."""
        ...


class Lookout:
    """Watches the questions to one place; `tell` hears why there is no answer, and None when there is one."""

    def __init__(self, place: Place, tell: Callable[[Reason | None], None]) -> None:
        self._place, self._tell = place, tell
        self._silence: asyncio.TimerHandle | None = None
        self._has_answered = self._has_told = False

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Around one question, from before it is asked."""
        self._has_answered = False
        loop = asyncio.get_running_loop()
        self._silence = loop.call_later(SILENT_SECONDS, self._held_up, NOTHING_ANSWERS)
        try:
            yield
        finally:
            self._silence.cancel()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Around the wait for more of an answer that has begun."""
        stalled = Reason("hub_stalled", {"source": self._place.host})
        loop = asyncio.get_running_loop()
        silence = loop.call_later(SILENT_SECONDS, self._say, stalled)
        try:
            yield
        finally:
            silence.cancel()
        if self._has_told:
            self._say(None)

    def answered(self) -> None:
        """The hub answers; what it says is another matter."""
        self._has_answered = True
        if self._silence is not None:
            self._silence.cancel()
        self._say(None)

    def broke(self, error: Exception) -> None:
        """The question, or its answer, ended with this; it will be asked again."""
        if isinstance(error, AppError):
            self._say(error.reason)
        else:
            self._held_up(why_away(error))

    def gave_up(self, error: Exception, tries: int) -> AppError:
        """What is said when it is not asked again."""
        if isinstance(error, AppError):
            return error
        source = self._place.host
        if self._has_answered:
            return Unreachable("download_broken", source=source, tries=tries)
        return Unreachable(self._place.away_codes[1], source=source, tries=tries, why=why_away(error))

    def _held_up(self, why: str) -> None:
        code = self._place.away_codes[0]
        self._say(Reason(code, {"source": self._place.host, "why": why}))

    def _say(self, why: Reason | None) -> None:
        self._has_told = why is not None
        self._tell(why)


def why_away(error: Exception) -> str:
    """The words for a line that does not come about, or that breaks."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "its name is not known in this network"
        case aiohttp.ClientProxyConnectionError():
            return "the proxy of this computer does not answer"
        case aiohttp.ClientHttpProxyError():
            return "the proxy of this computer lets nothing through"
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return "its certificate is not trusted here"
        case TimeoutError():
            return NOTHING_ANSWERS
        case aiohttp.ClientConnectorError(os_error=ConnectionRefusedError()):
            return "the connection is refused"
        case aiohttp.ClientConnectorError():
            return "there is no way to it"
    return "the connection breaks"
