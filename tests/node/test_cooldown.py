"""Tests of actions that may be repeated only after a while."""

from __future__ import annotations

import pytest

from app.node.planning.own_speed import WHILE_S, Cooldown


@pytest.mark.long
def test_each_thing_by_itself_and_again_after_a_while() -> None:
    now_s = 5.0
    rarely = Cooldown(lambda: now_s)
    assert rarely.may("a")
    rarely.done("a")
    assert (rarely.may("a"), rarely.may("b")) == (False, True)
    now_s += 60
    assert (rarely.may("a", 60), rarely.may("a")) == (True, False)
    now_s += WHILE_S
    assert rarely.may("a")
    rarely.done("b")
    assert list(rarely._done_s) == ["b"]
