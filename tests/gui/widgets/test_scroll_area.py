"""A page that scrolls ends where its last card ends, and its boxes leave the wheel to it."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication, QComboBox, QFrame, QLabel, QPushButton, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from app.gui.widgets.fields import wheel_scrolls_page
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, column, scrolled
from app.gui.widgets.scroll_area import ScrollArea
from tests.gui.wheel import turn

WORDS = "A sentence that stands in one line of a wide page, and wraps in a narrow one."
WIDE, NARROW, LOW = 900, 220, 200


def said(text: str) -> QLabel:
    made = paragraph()
    made.setText(text)  # as rows do: told after they were made
    return made


def page(qtbot: QtBot, wide: int, high: int) -> tuple[ScrollArea, list[QFrame]]:
    cards = [card(label("A rule"), said(WORDS)) for _ in range(8)]
    content = QWidget()
    content.setLayout(column(*cards, None))
    area = scrolled(content)
    qtbot.addWidget(area)
    area.resize(wide, high)
    area.show()
    QApplication.processEvents()
    return area, cards


@pytest.mark.parametrize("wide", [WIDE, NARROW])
def test_it_ends_with_its_last_card(qtbot: QtBot, wide: int) -> None:
    area, cards = page(qtbot, wide, LOW)
    assert area.verticalScrollBar().maximum() > 0
    content = area.widget()
    assert content is not None
    assert content.height() == cards[-1].geometry().bottom() + 1
    for words in area.findChildren(QLabel):
        assert words.height() >= words.heightForWidth(words.width())


def test_what_fits_has_no_bar(qtbot: QtBot) -> None:
    area, cards = page(qtbot, WIDE, LOW)
    area.resize(WIDE, cards[-1].geometry().bottom() + 1 + 2 * area.frameWidth() + 8)
    QApplication.processEvents()
    assert area.verticalScrollBar().maximum() == 0


def test_what_does_not_wrap_keeps_its_height(qtbot: QtBot) -> None:
    buttons = [QPushButton(f"Button {number}") for number in range(12)]
    words = said(WORDS)
    words.hide()
    content = QWidget()
    content.setLayout(column(*buttons, words))
    area = scrolled(content)
    qtbot.addWidget(area)
    area.resize(WIDE, LOW)
    area.show()
    QApplication.processEvents()
    least = sum(button.sizeHint().height() for button in buttons)
    assert content.height() >= least
    words.show()
    qtbot.waitUntil(lambda: content.height() > least + words.height())
    words.hide()
    qtbot.waitUntil(lambda: least <= content.height() == content.minimumSizeHint().height())


@pytest.mark.parametrize("kind", [QComboBox, QSpinBox])
def test_the_wheel_scrolls_even_where_something_was_just_chosen(qtbot: QtBot, kind: type[QComboBox | QSpinBox]) -> None:
    area, cards = page(qtbot, WIDE, LOW)
    box = kind()
    value = box.currentIndex if isinstance(box, QComboBox) else box.value
    if isinstance(box, QComboBox):
        box.addItems(["one", "two"])
    else:
        box.setValue(5)
    wheel_scrolls_page(box)
    inside = cards[0].layout()
    assert inside is not None
    inside.addWidget(box)
    QApplication.processEvents()
    before, bar = value(), area.verticalScrollBar()
    turn(box)
    assert value() == before
    assert bar.value() > 0
    bar.setValue(0)
    area.activateWindow()
    box.setFocus()
    qtbot.waitUntil(box.hasFocus)
    turn(box)
    assert value() == before
    assert bar.value() > 0
