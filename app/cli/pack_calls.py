"""Requests about engine packs, which also work while no node runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.node_calls import ask_node
from app.core.errors import Unreachable

if TYPE_CHECKING:
    from app.api.engine_packs import EnginePacks
    from app.client import NodeClient
    from app.node.engines.engine_packs import EnginePackService


def ask_packs(
    home: Path | None,
    of_node: Callable[[NodeClient], Awaitable[EnginePacks]],
    of_service: Callable[[EnginePackService], Awaitable[EnginePacks]],
) -> EnginePacks:
    """Ask the node, or if none is running, work on the packs of its home directly."""
    try:
        return ask_node(home, of_node)
    except Unreachable as error:
        if error.reason.code != "node_not_running":
            raise
    from app.machine.engine_packs.store import PackStore
    from app.machine.paths import Home
    from app.node.engines.engine_packs import EnginePackService

    async def work() -> EnginePacks:
        return await of_service(EnginePackService(PackStore(Home.at(home).engines)))

    return asyncio.run(work())
