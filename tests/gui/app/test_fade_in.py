"""A page fades in: it can be used at once, and under "reduce motion" it is there at once."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QPaintEvent, QPixmap, QRegion
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.gui.app import navigation
from app.gui.app.page import Page
from app.gui.app.window import STEPS, FadeIn, Window
from app.gui.look.motion import ALWAYS, NEVER
from app.gui.look.theme import PAGE_MS
from tests.gui.desk import Desk, window_over


@pytest.fixture
def window(qtbot: QtBot, away: Desk) -> Window:
    """Return an idle window with two pages, the second in front."""
    away.services.motion.choose(NEVER)  # reduced: whatever the system says
    made = window_over(qtbot, away.services, navigation.ACTIVITY)
    made.page(navigation.COMPUTER)
    qtbot.waitUntil(lambda: not made._fade.isVisible())
    return made


def page_at_the_middle(window: Window) -> QWidget | None:
    """Return the page that a click in the middle reaches."""
    widget = window.childAt(QPoint(window.width() // 2 + 100, window.height() // 2))
    while widget is not None and not isinstance(widget, Page):
        widget = widget.parentWidget()
    return widget


def test_a_page_fades_in_and_can_be_used_at_once(qtbot: QtBot, window: Window) -> None:
    fade, stack = window._fade, window._stack
    window.go(navigation.ACTIVITY)
    assert fade.isVisible()
    assert page_at_the_middle(window) is window.page(navigation.ACTIVITY)
    covered = stack.grab().toImage()
    window.resize(window.size() + QSize(40, 0))
    assert fade.size() == stack.size()
    window.resize(window.size() - QSize(40, 0))
    qtbot.waitUntil(lambda: not fade.isVisible())
    assert stack.grab().toImage() != covered


class Counted(FadeIn):
    """Counts how often it is painted."""

    n_painted = 0

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        super().paintEvent(event)
        self.n_painted += 1


def test_what_covers_a_page_grows_thinner_step_by_step(qtbot: QtBot, away: Desk) -> None:
    below = QWidget()
    qtbot.addWidget(below)
    fade = Counted(below, away.services.theme)
    below.resize(40, 40)
    below.show()
    fade.begin()
    fade._moves.pause()
    qtbot.waitUntil(lambda: fade.n_painted > 0)
    seen = []
    for at in (0, PAGE_MS // 4, PAGE_MS // 2):
        before = fade.n_painted
        fade._moves.setCurrentTime(at)
        if at:
            qtbot.waitUntil(lambda: fade.n_painted > before)  # noqa: B023  waited for at once
        picture = QPixmap(40, 40)
        picture.fill(Qt.GlobalColor.red)
        fade.render(picture, QPoint(), QRegion(), QWidget.RenderFlag.DrawChildren)
        seen.append(picture.toImage().pixelColor(20, 20))
    window = away.services.theme.color("window")
    shares = [abs(color.greenF() - window.greenF()) for color in seen]
    assert shares == sorted(shares)
    assert len(set(shares)) == 3
    fade.begin()
    assert fade._moves.currentValue() == STEPS  # from the beginning


def test_only_a_page_that_is_another_fades_in(window: Window) -> None:
    window.go(navigation.COMPUTER)
    assert not window._fade.isVisible()
    window.go(navigation.ACTIVITY)
    window.hide()
    window.show()
    assert not window._fade.isVisible()


def test_reduced_motion_stops_it(window: Window) -> None:
    window._services.motion.choose(ALWAYS)
    window.go(navigation.ACTIVITY)
    assert not window._fade.isVisible()
