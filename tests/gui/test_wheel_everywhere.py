"""The wheel scrolls the page. It never changes a number, a choice or a slider that the pointer only passes over."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QAbstractSlider, QAbstractSpinBox, QComboBox, QScrollBar, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from app.core.chat import Chat, ChatId
from app.gui.app import sidebar
from app.gui.chat.chat_settings import ChatSettings, ModelLimits
from app.gui.chat.presets import Presets
from app.gui.settings.settings_page import SettingsPage
from tests.gui.desk import Desk
from tests.gui.wheel import turn

Box = QAbstractSlider | QAbstractSpinBox | QComboBox


def boxes_of(page: QWidget) -> list[Box]:
    return [box for box in page.findChildren(QWidget) if isinstance(box, Box) and not isinstance(box, QScrollBar)]


def value_of(box: Box) -> object:
    if isinstance(box, QComboBox):
        return box.currentIndex()
    return box.text() if isinstance(box, QAbstractSpinBox) else box.value()


def check(page: QWidget) -> int:
    """Turn the wheel over each box of a page. Return how many there are."""
    boxes = boxes_of(page)
    for box in boxes:
        if isinstance(box, QComboBox) and box.count() < 2:
            box.addItems(["first", "second"])
        if isinstance(box, QSpinBox):
            box.setRange(0, 100)
        box.setEnabled(True)
        before = value_of(box)
        turn(box)
        assert value_of(box) == before, (type(page).__name__, type(box).__name__, box.accessibleName())
    return len(boxes)


@pytest.mark.parametrize("entry", sidebar.ENTRIES, ids=lambda entry: entry.name)
def test_no_page_is_changed_by_the_wheel(qtbot: QtBot, away: Desk, entry: sidebar.Entry) -> None:
    page = entry.make(away.services)
    qtbot.addWidget(page)
    page.finish()
    if isinstance(page, SettingsPage):
        for number in range(page.list.count()):
            page._group(number)
    n_boxes = check(page)
    assert n_boxes or entry.name not in ("models", "computer")
    if hasattr(page, "close_history"):
        page.close_history()


def test_no_chat_setting_is_changed_by_the_wheel(qtbot: QtBot, away: Desk) -> None:
    chat, over = Chat(ChatId("a")), QWidget()
    qtbot.addWidget(over)
    presets = Presets(away.services.preferences, over)
    dialog = ChatSettings(
        away.services.theme, presets, chat, chat, ["m"], lambda _: ModelLimits(), lambda _: None, over
    )
    assert check(dialog) > 8
