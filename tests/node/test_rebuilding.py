"""Placing a model anew: when it is looked at again whether it fits."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from app.node import rebuilding
from app.node.rebuilding import Rebuilding

NOTHING: Any = None  # not asked for here


@pytest.mark.parametrize("said", [True, False])
async def test_it_is_looked_again_also_without_news(
    said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory that this machine itself gets back is no news of the household."""
    monkeypatch.setattr(rebuilding, "LEAST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(rebuilding, "LONGEST_PAUSE_SECONDS", 30.0 if said else 0.1)
    news = asyncio.Event()
    made = Rebuilding(NOTHING, NOTHING, NOTHING, news, NOTHING)
    if said:
        news.set()
    began = time.monotonic()
    async with asyncio.timeout(10):
        await made.changed()
    assert time.monotonic() - began >= (0.01 if said else 0.1)
