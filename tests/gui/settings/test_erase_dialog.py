"""Remove all data: only after a tick, and the node ends before the window does."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.gui.settings.privacy import EraseDialog
from tests.gui.desk import Attached, Desk


def test_it_wants_a_tick_ends_the_window_and_leaves_the_rest_to_who_started_it(qtbot: QtBot, away: Desk) -> None:
    services, ended, parent = away.services, list[bool](), QWidget()
    launcher = services.launcher
    assert isinstance(launcher, Attached)

    def erases() -> bool:
        return launcher.erases

    qtbot.addWidget(parent)
    sheet = EraseDialog(services, parent, lambda: ended.append(True))
    sheet.open()
    assert not sheet.act.isEnabled()
    sheet.sure.setChecked(True)
    assert sheet.act.isEnabled()
    assert not erases()
    sheet.act.click()
    assert erases()
    assert ended == [True]  # no node was there to be waited for
    sheet._over()
    assert ended == [True]
    sheet.reject()


def test_its_button_says_how_much_goes(qtbot: QtBot, at_lone: Desk) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    sheet = EraseDialog(at_lone.services, parent)
    sheet.open()
    qtbot.waitUntil(lambda: sheet.act.text().startswith("Delete everything, "), timeout=5000)
    assert sheet.folder.text() == str(at_lone.services.launcher.home)
    sheet.reject()
