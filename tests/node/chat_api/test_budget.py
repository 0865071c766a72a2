"""Tokens a minute: had, waited for, had again."""

from __future__ import annotations

import pytest

from app.core.errors import Busy
from app.node.chat_api.budget import Budget


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_who_has_had_his_tokens_waits_until_enough_are_a_minute_old() -> None:
    clock = Clock()
    budget = Budget(lambda key: 100 if key == "a" else 0, clock)
    budget.check("a")
    budget.spend("a", 60)
    clock.now = 20.0
    budget.check("a")  # what is left is begun, and may be more in the end
    budget.spend("a", 90)
    with pytest.raises(Busy) as busy:
        budget.check("a")
    assert busy.value.reason.facts == {"most": 100, "seconds": 40}  # when the 60 are forgotten
    clock.now = 59.5
    with pytest.raises(Busy) as busy:
        budget.check("a")
    assert busy.value.reason.facts["seconds"] == 1
    clock.now = 60.0
    budget.check("a")
    for key in ("b", "a"):
        budget.spend(key, 1000)
    budget.check("b")  # has no limit, and is not counted
    with pytest.raises(Busy):
        budget.check("a")


def test_several_old_answers_must_go_where_one_is_not_enough() -> None:
    clock = Clock()
    budget = Budget(lambda _: 10, clock)
    for at in (0.0, 10.0, 20.0):
        clock.now = at
        budget.spend("a", 9)
    clock.now = 30.0
    with pytest.raises(Busy) as busy:
        budget.check("a")
    assert busy.value.reason.facts["seconds"] == 40  # the second of them is gone at 70
    clock.now = 70.0
    budget.check("a")
