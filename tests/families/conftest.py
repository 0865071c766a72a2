"""Workers that stay while a module's models go through them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.families.driven import Workers


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers() -> AsyncIterator[Workers]:
    async with Workers() as started:
        yield started
