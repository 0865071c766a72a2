"""A pause by hand takes no longer than the owner's rules say. Rules without a node."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from app.core.errors import Reason
from app.core.lending.lending import Draining, Working
from app.core.lending.policy import Rules
from app.node.lending import lending_policy
from tests.node.lending.test_lending_policy import HOST, Bench, until


async def test_who_computes_is_waited_for_as_long_as_the_rules_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SENSE_SECONDS", "LOOK_SECONDS", "DRAIN_LOOK_SECONDS"):
        monkeypatch.setattr(lending_policy, name, 0.02)
    bench = Bench(tmp_path / "settings.json", Rules(memory_bytes=1 << 30, drain_s=0.3))
    await bench.rules.begin(bench.layers)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(bench.rules.run(), name="rules")
        bench.layers.hosts = {HOST}
        await until(lambda: isinstance(bench.rules.state, Working))
        before = time.monotonic()
        pausing = tasks.create_task(bench.rules.pause(None, at_once=False), name="pause")
        await asyncio.sleep(0)  # it holds at once; to keep it in the file may take longer
        state = bench.rules.state
        assert isinstance(state, Draining)
        assert before + 0.3 <= state.deadline_s <= time.monotonic() + 0.3
        await until(lambda: bench.layers.told == [Reason("pause_owner")])
        assert time.monotonic() >= before + 0.3
        await pausing
        running.cancel()
