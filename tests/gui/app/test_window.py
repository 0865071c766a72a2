"""The window: what it says over every page stays until it was seen; its pages keep their room."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject, QRect, QSize
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from app.gui.api.node_state import Link
from app.gui.app import navigation, sidebar
from app.gui.app.window import SMALLEST, USUAL, Window
from app.gui.look.theme import Scheme
from app.gui.settings.advanced import Advanced
from app.gui.settings.settings_page import SettingsPage
from app.gui.settings.updates import Updates
from app.gui.welcome.welcome import Welcome
from app.gui.widgets import dialog
from tests.gui import walk
from tests.gui.desk import Desk, window_over
from tests.gui.speaking import speaking

SETTLED_MS, WATCHED_MS = 250, 150
MOST_PAINTED = 8  # in that time; one that never rests comes to thirty and more


def test_what_is_said_stays_when_the_node_comes_and_goes(qtbot: QtBot, away: Desk) -> None:
    window, pool = Window(away.services, lambda: False, lambda: None), away.services.pool
    qtbot.addWidget(window)
    window.say(lambda _: ("It crashed.", ()))
    pool.problem = "The node ended."
    pool.link_changed.emit()
    assert window._bar.sentence == "The node ended."
    pool.problem = None
    pool.link_changed.emit()
    assert window._told.sentence == "It crashed."
    assert window._told.isVisibleTo(window)
    (cross,) = window._told.findChildren(QToolButton)
    assert cross.accessibleName() == "Close this notice"
    cross.click()
    assert not window._told.sentence
    assert not window._bar_box.isVisibleTo(window)


def test_a_node_that_was_started_again_is_told_with_its_log(qtbot: QtBot, away: Desk) -> None:
    window = Window(away.services, lambda: False, lambda: None)
    qtbot.addWidget(window)
    away.services.pool.restarted.emit()
    assert window._told.sentence.startswith("The background service stopped unexpectedly and was")
    next(button for button in window._told.findChildren(QPushButton) if button.text() == "Details").click()
    assert not window._told.sentence
    page = window.page("settings")
    assert isinstance(page, SettingsPage)
    assert isinstance(page.group, Advanced)


def test_a_page_is_shown_with_the_part_that_is_asked_for(qtbot: QtBot, away: Desk) -> None:
    window = Window(away.services, lambda: False, lambda: None)
    qtbot.addWidget(window)
    window.go("settings/Updates")
    page = window.page("settings")
    assert isinstance(page, SettingsPage)
    assert isinstance(page.group, Updates)
    assert away.services.preferences.text("window/page") == "settings"


def test_a_node_that_cannot_be_started_is_told_with_its_log(qtbot: QtBot, away: Desk) -> None:
    """Its sentence sends one to the details."""
    window, pool = Window(away.services, lambda: False, lambda: None), away.services.pool
    qtbot.addWidget(window)
    pool.link, pool.problem = Link.AWAY, "Check the details, then click “Start again”."
    pool.link_changed.emit()
    buttons = {button.text(): button for button in window._bar.findChildren(QPushButton)}
    assert {"Details", "Start again"} <= buttons.keys()
    buttons["Details"].click()
    page = window.page("settings")
    assert isinstance(page, SettingsPage)
    assert isinstance(page.group, Advanced)
    assert window._bar.sentence == pool.problem


def test_a_screen_reader_hears_when_the_pool_stands_otherwise(
    qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr("app.gui.app.sidebar.announce", lambda _, sentence: heard.append(sentence))
    window, pool = Window(away.services, lambda: False, lambda: None), away.services.pool
    qtbot.addWidget(window)
    assert heard == []
    pool.link, pool.problem = Link.AWAY, "The node ended."
    pool.link_changed.emit()
    pool.problem = "The node ended again."  # a state that is still the same
    pool.link_changed.emit()
    away.services.theme.choose(Scheme.DARK, 1.0)
    assert heard == ["The node ended."]
    away.services.theme.choose(Scheme.LIGHT, 1.0)


def test_pages_are_chosen_by_pictures_alone_where_large_text_leaves_them_no_room(qtbot: QtBot, away: Desk) -> None:
    theme = away.services.theme
    window = Window(away.services, lambda: False, lambda: None)
    qtbot.addWidget(window)
    window.show()
    bar = window._sidebar
    result = {}
    wide = QSize(1300, 760)
    for text, size in ((1.0, SMALLEST), (1.5, SMALLEST), (2.0, wide), (2.0, USUAL), (2.0, SMALLEST)):
        theme.choose(Scheme.LIGHT, text)
        window.resize(size)
        qtbot.wait(20)
        state = [label for label in bar.findChildren(QLabel) if label.accessibleName() and label.isVisible()]
        assert [label.accessibleName().startswith("Pool status: ") for label in state] == [True]
        result[text, size.width()] = bar.width(), bar._words.isVisible()
    for button in bar.findChildren(QToolButton):
        assert button.accessibleName()
        assert button.accessibleName() in button.toolTip()
        assert button.width() >= theme.px(32)
    theme.choose(Scheme.LIGHT, 1.0)
    assert [shown for _, shown in result.values()] == [True, True, True, False, False]
    assert 3 * result[2.0, SMALLEST.width()][0] < result[2.0, wide.width()][0]


def test_the_keyboard_begins_at_the_page_that_is_shown(qtbot: QtBot, away: Desk) -> None:
    window = Window(away.services, lambda: False, lambda: None)
    qtbot.addWidget(window)
    window.go(navigation.SETTINGS)  # as at the start, before it is seen
    with qtbot.waitExposed(window):
        window.show()
    focus = window.focusWidget()
    assert focus is not None
    assert focus.accessibleName() == "Settings"


class Painted(QObject):
    """A counter of how often the window was painted."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.often = 0
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        self.often += event.type() == QEvent.Type.UpdateRequest
        return False


@pytest.mark.long
def test_a_window_that_nobody_touches_rests_on_every_page(qtbot: QtBot, at_lone: Desk) -> None:
    """A caret may blink, and news of the memory may come; a page that paints for ever comes to dozens."""
    window = window_over(qtbot, at_lone.services)
    seen = {}
    for entry in sidebar.ENTRIES:
        window.go(entry.name)
        assert window.page(entry.name).isVisible()
        qtbot.wait(SETTLED_MS)
        painted = Painted(window)
        qtbot.wait(WATCHED_MS)
        seen[entry.name] = painted.often
        window.removeEventFilter(painted)
    assert max(seen.values()) <= MOST_PAINTED, seen


@pytest.mark.parametrize("before", [QSize(), USUAL * 2])
def test_a_window_is_no_larger_than_its_screen_at_first_and_with_the_size_of_a_larger_one(
    qtbot: QtBot, away: Desk, small_screen: QRect, before: QSize
) -> None:
    if before.isValid():
        other = QWidget()
        qtbot.addWidget(other)
        other.resize(before)
        away.services.preferences.keep("window/geometry", other.saveGeometry())
    window = Window(away.services, lambda: False, lambda: None)
    qtbot.addWidget(window)
    window.bring_to_front()
    assert small_screen.contains(window.geometry())
    assert window.size() == dialog.screen_room(window)  # nor is it smaller than need be


@pytest.mark.long
@pytest.mark.parametrize("text", [1.0, 2.0])
def test_every_button_of_the_first_steps_is_on_a_small_screen(
    qtbot: QtBot, qapp: QApplication, at_lone: Desk, small_screen: QRect, text: float
) -> None:
    at_lone.services.theme.choose(Scheme.LIGHT, text)
    window = Window(at_lone.services, lambda: False, lambda: None)
    qtbot.addWidget(window)
    window.bring_to_front()
    result, counted = [], set()
    with speaking(qapp, "de"):
        steps = Welcome(at_lone.services, window)
        steps.begin()
        while True:
            qtbot.wait(SETTLED_MS)
            result += walk.beyond(steps, small_screen) + walk.cut(steps)
            counted.add(steps._where.pos())
            if steps.is_last:
                break
            steps.show_next()
        steps.end()
    at_lone.services.theme.choose(Scheme.LIGHT, 1.0)
    assert not result, "\n".join(result)
    assert len(counted) == 1  # what says which step it is stays where it is
