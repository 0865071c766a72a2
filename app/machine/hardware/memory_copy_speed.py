"""How fast this machine copies memory: what keeping a state costs."""

from __future__ import annotations

import time

TRIAL_BYTES = 16 << 20
TRIALS = 3


def seconds_per_byte() -> float:
    """The median of a few copies of some megabytes. Blocks for some milliseconds."""
    source, found = bytearray(TRIAL_BYTES), []
    for _ in range(TRIALS):
        began = time.perf_counter()
        bytes(source)
        found.append((time.perf_counter() - began) / TRIAL_BYTES)
    return sorted(found)[TRIALS // 2]
