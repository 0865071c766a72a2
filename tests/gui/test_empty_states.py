"""Wherever nothing is yet, there is a title, a sentence, and something to press that does something."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.gui.activity.activity_page import ActivityPage
from app.gui.app import navigation, sidebar
from app.gui.app.navigation import LOG_PAGE
from app.gui.models.models_page import ModelsPage
from app.gui.pool.pool_page import PoolPage
from app.gui.widgets.layouts import EmptyState
from tests.gui import walk
from tests.gui.desk import Desk, window_over


def buttons(empty: EmptyState) -> list[QPushButton]:
    return [button for button in empty.findChildren(QPushButton) if button.isVisible() and button.text()]


def empties(of: QWidget) -> list[EmptyState]:
    """Return the empty states that are visible now."""
    return [empty_state for empty_state in of.findChildren(EmptyState) if empty_state.isVisible()]


def incomplete(of: QWidget) -> list[str]:
    return [
        f"{empty.title.text()!r}: {empty.sentence.text()!r}"
        for empty in empties(of)
        if not (empty.title.text() and empty.sentence.text() and buttons(empty))
    ]


@pytest.mark.parametrize("name", [entry.name for entry in sidebar.ENTRIES])
def test_without_a_node_every_page_says_what_to_press(qtbot: QtBot, away: Desk, name: str) -> None:
    window = window_over(qtbot, away.services, name)
    for tab in walk.tabs(window.page(name)):
        assert not incomplete(window), tab


def test_a_machine_alone_is_offered_another(qtbot: QtBot, at_lone: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[bool] = []
    monkeypatch.setattr(PoolPage, "add_machine", lambda _: requests.append(True))
    page = PoolPage(at_lone.services)
    qtbot.addWidget(page)
    page.show()
    assert not incomplete(page)
    buttons(page.alone)[0].click()
    assert requests == [True]


def test_what_waits_for_the_node_leads_to_its_log(qtbot: QtBot, away: Desk) -> None:
    for page in (PoolPage(away.services), ModelsPage(away.services)):
        qtbot.addWidget(page)
        page.resize(1000, 700)
        page.show()
        for empty in empties(page):
            buttons(empty)[0].click()
        if isinstance(page, ModelsPage):
            assert page.notice.sentence  # said by the half that shows one model
            page.end()
    assert away.went == [LOG_PAGE, LOG_PAGE]


def test_a_log_that_shows_nothing_shows_everything_again(qtbot: QtBot, away: Desk) -> None:
    page = ActivityPage(away.services)
    qtbot.addWidget(page)
    page.show()
    page.tabs.setCurrentIndex(1)
    buttons(empties(page.log)[0])[0].click()
    assert away.went == [navigation.CHAT]
    page.log.words.setText("no such words")
    page.log.kind.setCurrentIndex(1)
    empty_state = empties(page.log)[0]
    assert empty_state.title.text() == "Nothing found"
    buttons(empty_state)[0].click()
    assert (page.log.words.text(), page.log.kind.currentIndex()) == ("", 0)


def test_a_benchmark_needs_a_model(qtbot: QtBot, away: Desk) -> None:
    page = ActivityPage(away.services)
    qtbot.addWidget(page)
    page.show()
    page.tabs.setCurrentIndex(2)
    (empty,) = empties(page.bench)
    buttons(empty)[0].click()
    assert away.went == [navigation.MODELS]
