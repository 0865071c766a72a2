"""What a system says of sleep and of its end, and who is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum


class Going(StrEnum):
    """What the system said."""

    SLEEPS = "sleeps"
    ENDS = "ends"
    STAYS = "stays"  # it is awake again, or does not end after all


Tell = Callable[[Going], Awaitable[None]]
