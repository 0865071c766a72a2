"""Tests of a notice about a bug of ours: plain words, folded details, and the path of the log."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.core.errors import AppError, BadInput, bug
from app.gui.app.navigation import LOG_PAGE
from app.gui.app.page import Page
from app.gui.widgets.buttons import WrappingButton
from app.gui.widgets.fold import Fold
from app.gui.widgets.notice import LINE
from tests.gui.desk import Desk


def failed(qtbot: QtBot, desk: Desk, error: AppError) -> tuple[Page, list[Fold]]:
    page = Page(desk.services, "Pool")
    qtbot.addWidget(page)
    page.resize(700, 400)
    page.show()
    page.fail(error)
    return page, page.notice.findChildren(Fold)


def test_a_mistake_of_ours_has_details_and_the_way_to_the_log(qtbot: QtBot, away: Desk) -> None:
    try:
        dict[str, str]()["a word of a person's"]
    except KeyError as error:
        page, (fold,) = failed(qtbot, away, bug(error))
    (words,) = [label for label in fold.findChildren(QLabel) if "bug" in label.text()]
    (log,) = fold.findChildren(QPushButton)
    assert not words.isVisible()
    fold.open()
    qtbot.waitUntil(words.isVisible)
    assert "KeyError@test_notice.py:" in words.text()
    assert "person" not in words.text()
    log.click()
    assert away.went == [LOG_PAGE]
    page.fail(BadInput("name_empty"))
    assert not fold.isVisible()


def test_what_a_node_said_badly_has_its_own_words(qtbot: QtBot, away: Desk) -> None:
    error = AppError("node_fault", detail="its answer was not understood")
    _, (fold,) = failed(qtbot, away, error)
    texts = [label.text() for label in fold.findChildren(QLabel)]
    assert any("node_fault · its answer was not understood" in text for text in texts)


def test_what_a_person_can_mend_has_none(qtbot: QtBot, away: Desk) -> None:
    _, folds = failed(qtbot, away, BadInput("name_empty"))
    assert folds == []


def test_an_answer_that_a_fault_of_ours_ended_has_them_too(qtbot: QtBot, away: Desk) -> None:
    _, folds = failed(qtbot, away, AppError("pipeline_fault"))
    assert len(folds) == 1


def test_a_long_sentence_is_no_narrow_column_beside_its_buttons(qtbot: QtBot, away: Desk) -> None:
    page, _ = failed(qtbot, away, BadInput("name_empty"))
    buttons = ("Choose another model", list), ("Ask the Guide", list)
    page.notice.say("The model could not be loaded. " * 9, "error", *buttons)
    words = page.notice.findChild(QLabel)
    assert words is not None
    line = LINE * words.fontMetrics().averageCharWidth()
    shown = page.notice.findChildren(WrappingButton)
    qtbot.waitUntil(lambda: all(button.isVisible() for button in shown))
    assert len(shown) == len(buttons)
    assert words.width() >= line
    assert min(button.geometry().top() for button in shown) >= words.geometry().bottom()
