"""Tests of the effect of leaving machines out, as one sentence that agrees with what is loaded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from app.gui.pool.load_forecast import PlanOutcome, WhatIf
from app.gui.pool.machine_facts import machines_of
from testbed.snapshots import household, snapshot_of

FAST = PlanOutcome("guide", fits=True, machines=("a",), tok_s=64.6)
SLOW = replace(FAST, tok_s=40.0)


@pytest.mark.parametrize(
    ("now", "in_use", "expected"),
    [
        (SLOW, True, "Guide would run at 65 tok/s instead of 40 tok/s, on 1 machine(s)."),
        (FAST, False, "Guide would still run at 65 tok/s, on 1 machine(s)."),
        (FAST, True, "Guide would run at 65 tok/s, on 1 machine(s)."),
        (replace(FAST, tok_s=None), False, "Guide would run at 65 tok/s, on 1 machine(s)."),
    ],
)
def test_nothing_changes_only_where_it_holds_nothing(
    qtbot: QtBot, now: PlanOutcome, in_use: bool, expected: str
) -> None:
    bar = WhatIf(lambda: None, lambda: None)
    qtbot.addWidget(bar)
    here, there, *_ = machines_of(snapshot_of(household(2)))
    runs = ((4, 6),) if in_use else ()
    bar.show_change([here, replace(there, left_out=True, held=replace(there.held, layers=runs))], now, FAST)
    words = bar.words.text()
    assert words.endswith(expected)
    assert ("would still run" in words) == ("would still run" in expected)
