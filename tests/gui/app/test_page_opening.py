"""A page comes in steps at its first showing: the window hears clicks between them, and shows what is whole."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.gui.activity.activity_page import ActivityPage
from app.gui.app import navigation
from app.gui.app.page import Page
from app.gui.app.window import Window, shown_with
from app.gui.pool.pool_page import PoolPage
from app.gui.settings.settings_page import SettingsPage
from app.gui.settings.updates import Updates
from testbed.snapshots import household
from tests.gui.desk import Desk, window_over

POLISHED = Qt.WidgetAttribute.WA_WState_Polished


def in_front(window: Window) -> QWidget:
    widget = window._stack.currentWidget()
    assert widget is not None
    return widget


def test_a_page_comes_in_steps_and_is_shown_whole(qtbot: QtBot, away: Desk) -> None:
    window = window_over(qtbot, away.services, navigation.CHAT)
    window.go(f"{navigation.SETTINGS}/Updates")
    assert not isinstance(in_front(window), Page), "the page of before takes clicks and keys"
    assert not window.shows(navigation.SETTINGS)
    qtbot.waitUntil(lambda: isinstance(in_front(window), SettingsPage), timeout=10_000)
    page = in_front(window)
    assert isinstance(page, SettingsPage)
    assert page is window.page(navigation.SETTINGS)
    assert isinstance(page.group, Updates)
    assert not page.go_on(), "something is missing"


def test_the_page_that_is_asked_for_last_is_shown(qtbot: QtBot, away: Desk) -> None:
    window = window_over(qtbot, away.services, navigation.CHAT)
    window.go(navigation.MODELS)
    window.go(navigation.ACTIVITY)
    qtbot.waitUntil(lambda: isinstance(in_front(window), ActivityPage), timeout=10_000)
    assert navigation.MODELS not in window._pages
    window.go(navigation.MODELS)
    window.go(navigation.CHAT)
    assert in_front(window) is window.page(navigation.CHAT)
    made = window.page(navigation.MODELS)  # whoever needs it now gets it whole
    assert in_front(window) is made
    assert not window._openings


def test_a_page_that_broke_is_made_anew(qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    window = window_over(qtbot, away.services, navigation.CHAT)
    with monkeypatch.context() as broken:
        broken.setattr(Page, "go_on", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            window.page(navigation.COMPUTER)
    page = window.page(navigation.COMPUTER)
    assert in_front(window) is page


def test_what_is_shown_with_a_page_is_dressed_before(qtbot: QtBot) -> None:
    top, seen, away_ = QWidget(), QLabel("seen"), QLabel("put away")
    qtbot.addWidget(top)
    box = QVBoxLayout(top)
    for label in (seen, away_):
        box.addWidget(label)
    QLabel("inside", away_)
    away_.hide()
    widgets = list(shown_with(top))
    assert widgets == [top, seen]
    for dressed in widgets:
        dressed.ensurePolished()
    assert seen.testAttribute(POLISHED)


def test_a_page_that_nobody_sees_is_filled_when_it_is_shown(qtbot: QtBot, away: Desk) -> None:
    pool = away.services.pool
    pool.snapshot = household(2)
    window = window_over(qtbot, away.services, navigation.POOL)
    page = window.page(navigation.POOL)
    assert isinstance(page, PoolPage)
    window.page(navigation.CHAT)
    pool.snapshot = household(3)
    pool.changed.emit()
    assert page.views.table.model().rowCount() == 2
    window.go(navigation.POOL)
    assert page.views.table.model().rowCount() == 3


def test_the_tray_opens_the_pool_at_a_machine_that_came_meanwhile(qtbot: QtBot, away: Desk) -> None:
    pool = away.services.pool
    pool.snapshot = household(2)
    window = window_over(qtbot, away.services, navigation.POOL)
    page = window.page(navigation.POOL)
    assert isinstance(page, PoolPage)
    window.hide()
    pool.snapshot = household(3)
    pool.changed.emit()
    newest = list(pool.snapshot["machines"])[-1]
    window.go(f"{navigation.POOL}/{newest}")
    window.show()
    assert page.inspector.isVisible()
