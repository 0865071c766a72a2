"""F8: somebody sets the clock on the wall; no wait of a node follows it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from app.core.lending.policy import Rules
from app.node.lending import lending_policy
from tests.node.lending.test_lending_policy import Bench, until


@pytest.mark.parametrize("jump_s", [86_400.0, -86_400.0, 3.2e8, -3.2e8])
async def test_a_pause_lasts_as_long_as_it_was_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    monkeypatch.setattr(lending_policy, "LOOK_SECONDS", 0.02)
    bench = Bench(tmp_path / "settings.json", Rules(memory_bytes=1 << 30))
    await bench.rules.begin(bench.layers)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(bench.rules.run())
        began, true_time = time.monotonic(), time.time
        shown = (await bench.rules.pause(0.5, at_once=False)).lending
        monkeypatch.setattr(time, "time", lambda: true_time() + jump_s)
        assert bench.rules.snapshot().resumes_in_s in (shown.resumes_in_s, 0)
        await until(lambda: bench.word() == "ready")
        assert time.monotonic() - began >= 0.5
        running.cancel()
