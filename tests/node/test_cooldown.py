"""Tests of actions that may be repeated only after a while."""

from __future__ import annotations

import pytest

from app.node.planning.local_speed import WHILE_S, Cooldown


@pytest.mark.long
def test_each_thing_by_itself_and_again_after_a_while() -> None:
    now_s = 5.0
    cooldown = Cooldown(lambda: now_s)
    assert cooldown.is_over("a")
    cooldown.start("a")
    assert (cooldown.is_over("a"), cooldown.is_over("b")) == (False, True)
    now_s += 60
    assert (cooldown.is_over("a", 60), cooldown.is_over("a")) == (True, False)
    now_s += WHILE_S
    assert cooldown.is_over("a")
    cooldown.start("b")
    assert list(cooldown._done_s) == ["b"]
