"""Tests that a computer's power draw is reported when it changes by whole watts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from app.core.lending.policy import Rules
from tests.node.lending.test_lending_policy import Bench


async def test_another_draw_is_news_and_the_same_is_none(tmp_path: Path) -> None:
    bench, news = Bench(tmp_path / "settings.json", Rules(memory_bytes=1 << 30)), list[int | None]()
    await bench.rules.begin(bench.layers)
    bench.rules._changed = lambda: news.append(bench.rules.watts())
    for watts in (40.2, 40.4, 41.0):
        bench.owner.now = replace(bench.owner.now, watts=watts)
        await bench.rules._sense()
    assert news == [40, 41]
