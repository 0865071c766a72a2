"""What a node reads before anything else, checked without one: damaged, it keeps every node from starting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from app.core.check import Check
from app.core.errors import AppError
from app.core.reasons import said
from app.machine import settings
from app.machine.paths import Home
from app.machine.secrets.keystore import open_keystore
from app.network import identity
from app.network.membership_log.log_store import LogStore


async def kept(home: Home) -> list[Check]:
    """What is damaged, each with its cure; nothing where a node could start. Writes nothing."""

    async def of_settings() -> object:
        return await asyncio.to_thread(settings.load, home.settings_file)

    async def of_identity() -> object:
        return await identity.load(home, await open_keystore(home))

    async def of_household() -> object:
        return await LogStore(home.household, home.write).load()

    reads: dict[str, Callable[[], Awaitable[object]]] = {
        "Settings": of_settings,
        "Identity": of_identity,
        "Household": of_household,
    }
    found = []
    for name, read in reads.items():
        try:
            await read()
        except AppError as error:
            found.append(Check(name, False, said(error)))
    return found
