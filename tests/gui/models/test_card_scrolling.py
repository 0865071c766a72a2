"""Tests that vertically scrolled content is never cut off at its side."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter, QWidget
from pytestqt.qtbot import QtBot

from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column
from app.gui.widgets.scroll_area import CardScrollArea


def test_the_bar_covers_no_words(qtbot: QtBot) -> None:
    words = label("Words")
    content = QWidget()
    content.setLayout(column(words))
    content.setMinimumHeight(900)
    area, halves = CardScrollArea(content), QSplitter(Qt.Orientation.Horizontal)
    for widget in (QWidget(), area):
        halves.addWidget(widget)
    halves.setChildrenCollapsible(False)
    qtbot.addWidget(halves)
    halves.resize(500, 200)
    halves.setSizes([480, 20])
    halves.show()
    words.setText("Words of which none may stand under the bar")  # later, as a plan arrives
    qtbot.waitUntil(lambda: area.viewport().width() >= words.sizeHint().width(), timeout=3000)
    assert content.width() <= area.viewport().width()
