"""Whether a machine is reached from outside: a member connects to its port, and says whether it could and hears it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from app.core.errors import Unreachable
from app.network.messages import Called, CallMe, Message
from app.network.sockets import Address

TRY_SECONDS = 3.0  # a firewall that drops is silent
ANSWER_SECONDS = 2 * TRY_SECONDS
AGAIN_SECONDS = 1.0  # between two tries for one member: nobody's port scanner


class CallBack:
    """Both sides of it on one link. It connects only to where that peer itself says it listens.

    hears: whether that peer's announcements arrive here, None where that is not known.
    """

    def __init__(
        self,
        send: Callable[[Message], Awaitable[None]],
        address: Callable[[], Address],
        clock: Callable[[], float] = time.monotonic,
        hears: Callable[[], bool | None] = lambda: None,
    ) -> None:
        self._send, self._address, self._clock = send, address, clock
        self._hears = hears
        self._asked: asyncio.Future[Called] | None = None
        self._number, self._tried_at = 0, -AGAIN_SECONDS

    async def ask(self) -> Called | None:
        """Have the peer connect to us, and say whether it could; None when it did not answer."""
        if self._asked is None:
            self._asked = asyncio.get_running_loop().create_future()
            self._number += 1
        asked = self._asked
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._send(CallMe(request=self._number))
                return await asyncio.shield(asked)
        except (TimeoutError, Unreachable):
            return None
        finally:
            self._asked = None if self._asked is asked else self._asked

    async def heard(self, message: CallMe | Called) -> None:
        match message:
            case Called(request=number):
                if self._asked and not self._asked.done() and number == self._number:
                    self._asked.set_result(message)
            case CallMe(request=number):
                reached = await self._try()
                with suppress(Unreachable):  # then the link is gone, and with it who asked
                    await self._send(Called(request=number, reached=reached, hears=self._hears()))

    async def _try(self) -> bool | None:
        now = self._clock()
        if now - self._tried_at < AGAIN_SECONDS:
            return None
        self._tried_at, address = now, self._address()
        try:
            async with asyncio.timeout(TRY_SECONDS):
                _, writer = await asyncio.open_connection(address.host, address.port)
        except (TimeoutError, OSError):
            return False
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return True
