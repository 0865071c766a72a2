"""How long one question to the hub may take. Apart from what asks it, which a node loads only when it asks."""

from __future__ import annotations

import time
from collections.abc import Callable

from app.core.errors import Unreachable


class Limits:
    """How long one question to the hub may take; `alive` raises where nobody waits for it any more."""

    def __init__(self, seconds: float, alive: Callable[[], None] = lambda: None) -> None:
        self._deadline, self._alive = time.monotonic() + seconds, alive

    def left(self, source: str) -> float:
        """The seconds left. Raises Unreachable when there are none."""
        self._alive()
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise Unreachable("hub_slow", source=source)
        return seconds
