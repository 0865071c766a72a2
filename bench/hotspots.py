"""Reads folded stacks, `frame;frame;frame 12`, and names where the samples fell. Pure."""

from __future__ import annotations

import re
from collections import Counter

MOST_SPOTS = 15
# Threads that wait for work: they use no time, though a sampler may count them.
WAITS = ("select (selectors", "_do_waitpid (asyncio", "_worker (concurrent", "wait (threading")
_LINE = re.compile(r":\d+\)$")  # `write (ssl.py:123)` -> the function, not the line


def hot_spots(folded: str, most: int = MOST_SPOTS) -> list[tuple[str, float]]:
    """The functions at the top of the stacks with their share of all samples, largest first."""
    counts: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, number = line.rpartition(" ")
        top = _LINE.sub(")", stack.rsplit(";", 1)[-1])
        if stack and number.isdigit() and not any(wait in top for wait in WAITS):
            counts[top] += int(number)
    total = counts.total()
    return [(spot, count / total) for spot, count in counts.most_common(most)]
