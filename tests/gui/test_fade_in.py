"""A page fades in: it can be used at once, and under "reduce motion" it is there at once."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QSize
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.gui import pages
from app.gui.motion import ALWAYS, NEVER
from app.gui.page import Page
from app.gui.window import Window
from tests.gui.desk import Desk, window_over


@pytest.fixture
def window(qtbot: QtBot, away: Desk) -> Window:
    """With two pages, the second in front, at rest."""
    away.services.motion.choose(NEVER)  # reduced: whatever the system says
    made = window_over(qtbot, away.services, pages.ACTIVITY)
    made.page(pages.COMPUTER)
    qtbot.waitUntil(lambda: not made._fade.isVisible())
    return made


def page_at_the_middle(window: Window) -> QWidget | None:
    """What a click there reaches."""
    found = window.childAt(QPoint(window.width() // 2 + 100, window.height() // 2))
    while found is not None and not isinstance(found, Page):
        found = found.parentWidget()
    return found


def test_a_page_fades_in_and_can_be_used_at_once(qtbot: QtBot, window: Window) -> None:
    fade, stack = window._fade, window._stack
    window.go(pages.ACTIVITY)
    assert fade.isVisible()
    assert page_at_the_middle(window) is window.page(pages.ACTIVITY)
    covered = stack.grab().toImage()
    window.resize(window.size() + QSize(40, 0))
    assert fade.size() == stack.size()
    window.resize(window.size() - QSize(40, 0))
    qtbot.waitUntil(lambda: not fade.isVisible())
    assert stack.grab().toImage() != covered


def test_only_a_page_that_is_another_fades_in(window: Window) -> None:
    window.go(pages.COMPUTER)
    assert not window._fade.isVisible()
    window.go(pages.ACTIVITY)
    window.hide()
    window.show()
    assert not window._fade.isVisible()


def test_reduced_motion_stops_it(window: Window) -> None:
    window._services.motion.choose(ALWAYS)
    window.go(pages.ACTIVITY)
    assert not window._fade.isVisible()
