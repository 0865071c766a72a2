"""The Pool page of a machine that knows no other."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.gui.household.pool_page import PoolPage
from tests.gui.desk import Desk
from tests.gui.household.snapshots import household


@pytest.mark.parametrize("roles", [["admin", "host"], ["host"]])
def test_only_who_may_add_a_machine_is_asked_to(qtbot: QtBot, away: Desk, roles: list[str]) -> None:
    """Who was removed may not."""
    page, pool = PoolPage(away.services), away.services.pool
    qtbot.addWidget(page)
    page.show()
    pool.snapshot = household(1, with_model=False)
    for one in pool.snapshot["machines"].values():
        one["roles"] = roles
    pool.changed.emit()
    assert page.alone.isVisible() == page.add.isVisible() == ("admin" in roles)
