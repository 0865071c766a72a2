"""Memory for what one placement is about to open, where others on the same host want some of it too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from app.core.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class Room:
    """make: others give up what they can spare for a plan, before its stages are opened; raises DoesNotFit.
    choosing: held from a look at the memory until what is chosen is claimed, so that the next one counts it;
    stirred: what is opened is so inside, and others do nothing ahead meanwhile."""

    make: Callable[[Plan], Awaitable[None]]
    choosing: asyncio.Lock = field(default_factory=asyncio.Lock)
    stirred: Callable[[], AbstractContextManager[None]] = nullcontext
