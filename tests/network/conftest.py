"""Common fixtures of tests of the household network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.network.nodes import Nodes, opened


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with opened(tmp_path) as made:
        yield made
