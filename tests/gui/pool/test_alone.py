"""The Pool page of a machine that knows no other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from app.gui.look.formats import GIB
from app.gui.pool.machine_facts import machines_of
from app.gui.pool.machine_words import largest_model
from app.gui.pool.pool_page import PoolPage
from testbed.snapshots import household, snapshot_of
from tests.gui.desk import Desk


@pytest.mark.parametrize("roles", [["admin", "host"], ["host"]])
def test_only_who_may_add_a_machine_is_asked_to(qtbot: QtBot, away: Desk, roles: list[str]) -> None:
    """A removed machine may not."""
    page, pool = PoolPage(away.services), away.services.pool
    qtbot.addWidget(page)
    page.show()
    pool.snapshot = household(1, with_model=False)
    for machine in pool.snapshot["machines"].values():
        machine["roles"] = roles
    pool.changed.emit()
    assert page.alone.isVisible() == page.add.isVisible() == ("admin" in roles)


@pytest.mark.parametrize(
    ("lent", "words"),
    [
        (10 * GIB, "Models of up to 16.0 GiB fit on this machine now. Others can use at most 10.0 GiB of this memory."),
        (16 * GIB, "Models of up to 16.0 GiB fit on this machine now."),
        (0, "Models of up to 16.0 GiB fit on this machine now."),
    ],
)  # fmt: skip
def test_two_amounts_of_memory_are_told_apart(lent: int, words: str) -> None:
    (machine,) = machines_of(snapshot_of(household(1)))
    assert largest_model(replace(machine, memory=replace(machine.memory, lent=lent)), 16 * GIB) == words
