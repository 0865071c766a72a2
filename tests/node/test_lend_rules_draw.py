"""What a computer draws is told when it is another, as far as whole watts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from app.core.lending.policy import Rules
from tests.node.lending.test_lending_policy import Bench


async def test_another_draw_is_news_and_the_same_is_none(tmp_path: Path) -> None:
    one, news = Bench(tmp_path / "settings.json", Rules(memory_bytes=1 << 30)), list[int | None]()
    await one.rules.begin(one.layers)
    one.rules._changed = lambda: news.append(one.rules.watts())
    for watts in (40.2, 40.4, 41.0):
        one.owner.now = replace(one.owner.now, watts=watts)
        await one.rules._sense()
    assert news == [40, 41]
