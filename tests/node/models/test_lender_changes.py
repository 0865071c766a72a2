"""Tests of which of the lenders' periodic reports a plan may depend on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.household.household import Described, SelfDescription
from app.core.ids import MachineId
from app.node.models.model_manager import LenderChanges

DEN, ATTIC = MachineId("d" * 64), MachineId("a" * 64)
TOLD = Described(ATTIC, "attic", "CPU", 1 << 40, 1 << 40, 0, "ready")


@pytest.mark.parametrize(
    ("expected", "is_new"),
    [
        (TOLD, False),
        (replace(TOLD, hottest_c=61), False),
        (replace(TOLD, about=SelfDescription(watts=41, used_by=(DEN,))), False),
        (replace(TOLD, lends_bytes=1 << 30), True),
        (replace(TOLD, used_bytes=1), True),
        (replace(TOLD, lending="draining"), True),
        (replace(TOLD, name="loft"), True),
        (replace(TOLD, about=SelfDescription(engine="another")), True),
    ],
)
def test_what_is_news(expected: Described, is_new: bool) -> None:
    news = LenderChanges()
    assert news.is_new(TOLD)
    assert news.is_new(expected) is is_new
    assert not news.is_new(expected)


def test_whoever_left_is_news_when_it_comes_again() -> None:
    news = LenderChanges()
    assert news.is_new(TOLD)
    news.forget(ATTIC)
    assert news.is_new(TOLD)
    news.forget(DEN)
    assert not news.is_new(TOLD)
