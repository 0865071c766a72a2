"""How a worker waits for its next frame: awake for a moment after a step, asleep otherwise."""

from __future__ import annotations

import os
import select
import time

# While an answer is made, the next step comes soon. A processor that went to sleep meanwhile wakes late and
# slow: virtual machines lost 5 ms of a token of 50 that way (README). Longer waits are not worth the power.
AWAKE_S = 0.1


class Waiting:
    """Waits on one pipe. Where the system has no poll() for pipes (Windows), always asleep."""

    def __init__(self, fd: int) -> None:
        self._poll = (
            select.poll() if hasattr(select, "poll") and hasattr(os, "sched_yield") else None
        )
        if self._poll is not None:
            self._poll.register(fd, select.POLLIN)
        self._awake_until = 0.0

    def computed(self) -> None:
        """A step was just answered."""
        self._awake_until = time.monotonic() + AWAKE_S

    def wait(self) -> None:
        """Return when there is something to read, or when it is time to fall asleep over it."""
        if self._poll is None:
            return
        while time.monotonic() < self._awake_until and not self._poll.poll(0):
            os.sched_yield()  # whoever has work on this core goes first
