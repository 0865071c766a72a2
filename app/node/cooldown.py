"""What may be done again only after a while: each thing by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

WHILE_S = 3600.0


class Cooldown:
    """When each was done last."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._done_s: dict[Hashable, float] = {}

    def may(self, key: Hashable, within_s: float = WHILE_S) -> bool:
        """Whether it was not done for a while."""
        return self._now() - self._done_s.get(key, -WHILE_S) >= within_s

    def done(self, key: Hashable) -> None:
        """It is done now."""
        self._done_s = {one: at for one, at in self._done_s.items() if not self.may(one)}
        self._done_s[key] = self._now()
