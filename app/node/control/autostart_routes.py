"""Start at sign-in, for the loopback API: as the system has it, read back each time."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from app.machine.autostart import autostart
from app.machine.paths import Home

Json = dict[str, Any]


async def told() -> Json:
    """Whether Poolhouse starts at sign-in, and where the system keeps that."""
    return asdict(await asyncio.to_thread(autostart.state))


async def choose(on: bool, home: Home) -> Json:
    """Turn it on or off; what the system has afterwards comes back. Raises Refused."""
    return asdict(await asyncio.to_thread(autostart.choose, on, home))
