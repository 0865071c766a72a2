"""How long the checks of samples give way to what members send: whoever sends slowly keeps none from running."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from app.core.ids import MachineId

LEAST_BYTES_PER_SECOND = 1 << 20  # a poor wireless link; the listener waits for a sixty-fourth
OFFER_S = 5.0  # that an offer counts for, as the layers that it brings make up for it
MOST_WAITED_S = 60.0  # longer than such a link needs for all its bytes


class Patience:
    """With each member, over all that it sends: many short uploads count like a long one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waited_s: dict[MachineId, float] = {}

    def has_ended(self, member: MachineId) -> bool:
        """Until it has sent enough, quickly."""
        return self._waited_s.get(member, 0.0) > MOST_WAITED_S

    def offered(self, member: MachineId) -> None:
        """Layers, that is; they may never come."""
        self._count(member, OFFER_S)

    async def of(
        self, member: MachineId, chunks: AsyncIterator[bytes], ended: Callable[[], None]
    ) -> AsyncGenerator[bytes]:
        """The same bytes. `ended` is called when it has ended, once or again. Only the sender's time counts."""
        while True:
            began_s, chunk = self._clock(), None
            try:
                chunk = await anext(chunks, None)
            finally:  # also of one that breaks off
                bought_s = len(chunk or b"") / LEAST_BYTES_PER_SECOND
                self._count(member, self._clock() - began_s - bought_s)
            if self.has_ended(member):
                ended()
            if chunk is None:
                return
            yield chunk

    def _count(self, member: MachineId, seconds: float) -> None:
        self._waited_s[member] = max(0.0, self._waited_s.get(member, 0.0) + seconds)
