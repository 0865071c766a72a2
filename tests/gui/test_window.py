"""The window: what it says over every page stays until it was seen."""

from __future__ import annotations

from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.gui.window import Window
from tests.gui.desk import Desk


def test_what_is_said_stays_when_the_node_comes_and_goes(qtbot: QtBot, away: Desk) -> None:
    window, pool = Window(away.services, lambda: False, lambda: None), away.services.pool
    qtbot.addWidget(window)
    window.say("It crashed.")
    pool.problem = "The node ended."
    pool.link_changed.emit()
    assert window._bar.sentence == "The node ended."
    pool.problem = None
    pool.link_changed.emit()
    assert window._told.sentence == "It crashed."
    assert window._told.isVisibleTo(window)
    next(one for one in window._told.findChildren(QPushButton) if one.text() == "OK").click()
    assert not window._told.sentence
    assert not window._bar_box.isVisibleTo(window)
