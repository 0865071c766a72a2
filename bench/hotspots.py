"""Reads folded stacks, `frame;frame;frame 12`, and names where the samples fell. Pure."""

from __future__ import annotations

import re
from collections import Counter

MOST_SPOTS = 15
_LINE = re.compile(r":\d+\)$")  # `write (ssl.py:123)` -> the function, not the line


def hot_spots(folded: str, most: int = MOST_SPOTS) -> list[tuple[str, float]]:
    """The functions at the top of the stacks with their share of all samples, largest first."""
    counts: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, number = line.rpartition(" ")
        if stack and number.isdigit():
            counts[_LINE.sub(")", stack.rsplit(";", 1)[-1])] += int(number)
    total = counts.total()
    return [(spot, count / total) for spot, count in counts.most_common(most)]
