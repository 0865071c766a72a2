"""The Pool page whose node goes: nothing old is shown as if it were so."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.gui.api.node_state import Link
from app.gui.pool.pool_page import PoolPage
from tests.gui.desk import Desk


def test_what_is_old_is_not_shown_as_live(qtbot: QtBot, at_lone: Desk) -> None:
    page, pool = PoolPage(at_lone.services), at_lone.services.pool
    qtbot.addWidget(page)
    page.show()
    page.choose(page.machines[0].id)
    live = (page.headline, page.inspector, page.view_choice, page.add)
    assert all(item.isVisible() for item in live)
    pool._say(Link.STARTING, None)
    assert page.views.currentWidget() is page.views.map, "a restart takes a moment"
    pool._say(Link.AWAY, "It keeps ending.")
    assert page.views.currentWidget() is page.views.away
    assert not any(item.isVisible() for item in (*live, page.what_if, page.alone))
    pool._say(Link.THERE, None)
    assert page.views.currentWidget() is page.views.map
    assert all(item.isVisible() for item in (page.headline, page.view_choice, page.add, page.alone))
