"""The wait of a worker for its next frame: awake and ready for a moment after a step, asleep otherwise."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable

from backends.worker.process import quota_cores

# While an answer is made, the next step comes soon. A processor that went to sleep meanwhile wakes late and
# slow: virtual machines lost 5 ms of a token of 50 that way (README). Longer waits are not worth the power.
AWAKE_S = 0.1
READY_S = 0.001  # from one rehearsal to the next, while awake
# The node has this core for a moment after each step. Whoever takes it oftener in one wait, or for longer, computes,
# and being awake takes from that: three workers of one household on two cores lost a third of their speed so.
CONTESTED_SWITCHES, CONTESTED_S = 12, 0.002
ASLEEP_S = 1.0  # for so long each wait is slept through then


if sys.platform == "win32":  # no wait is awake there

    def switches() -> int:
        """Return 0: this system does not count them."""
        return 0

else:
    import resource

    def switches() -> int:
        """Return how often the system gave this process's core to another while it could have gone on."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


class Waiting:
    """A wait on one pipe.

    Always asleep where the system has no poll() for pipes (Windows), and where a control group counts this process's
    time: time spent awake would be missing for the work.
    """

    def __init__(self, fd: int, rehearse: Callable[[], None] = lambda: None) -> None:
        """Wait on the pipe `fd`.

        rehearse: goes the way of a frame as far as possible without one. Weights that streamed through the processor's
        caches have evicted its code, and the next frame would wait for its return.
        """
        self._rehearse = rehearse
        can = hasattr(select, "poll") and hasattr(os, "sched_yield") and quota_cores() is None
        self._poll = select.poll() if can else None
        if self._poll is not None:
            self._poll.register(fd, select.POLLIN)
        self._awake_until = self._asleep_until = 0.0

    def computed(self) -> None:
        """Note that a step was just answered."""
        self._awake_until = time.monotonic() + AWAKE_S

    def wait(self) -> None:
        """Return when there is something to read, or when it is time to fall asleep over it."""
        if self._poll is None:
            return
        ready_until, before, now = 0.0, switches(), time.monotonic()
        while self._asleep_until <= now < self._awake_until and not self._poll.poll(0):
            os.sched_yield()  # other work on this core goes first: the node, with the answer
            yielded_at, now = now, time.monotonic()
            taken = switches() - before
            if taken > CONTESTED_SWITCHES or (taken and now - yielded_at > CONTESTED_S):
                self._asleep_until = now + ASLEEP_S
                return
            if now >= ready_until and not self._poll.poll(0):
                self._rehearse()
                now = time.monotonic()
                ready_until = now + READY_S
