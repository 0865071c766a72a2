"""Nothing is larger or elsewhere for having the focus, nor for what stands beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QComboBox,
    QLabel,
    QLineEdit,
    QListView,
    QPlainTextEdit,
    QSpinBox,
    QTableView,
    QTimeEdit,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.gui.app.page import Page
from app.gui.look.theme import Scheme, set_role
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.layouts import column
from tests.gui.desk import Desk

SCALES = (1.0, 1.1, 1.25, 1.5, 2.0)


def code() -> QLineEdit:
    made = QLineEdit()
    set_role(made, "code")
    return made


@pytest.mark.parametrize(
    "make",
    [
        QComboBox, QLineEdit, QSpinBox, QTimeEdit, QPlainTextEdit, QToolButton, code,
        QTableView, QListView,
        lambda: button("Load"), lambda: button("Load", role="primary"), lambda: button("Load", role="link"),
    ],
)  # fmt: skip
def test_the_focus_makes_nothing_larger(qtbot: QtBot, away: Desk, make: Callable[[], QWidget]) -> None:
    theme = away.services.theme
    for scale in SCALES:
        theme.choose(Scheme.LIGHT, scale)
        window, first, second = QWidget(), make(), make()  # a box keeps the size it had first
        qtbot.addWidget(window)
        window.setLayout(column(first, second))
        window.show()
        first.setFocus()
        qtbot.waitUntil(first.hasFocus)
        window.resize(window.width() + 8, window.height() + 8)
        assert first.sizeHint() == second.sizeHint(), scale
        assert around(first) == around(second), scale
        window.close()


def around(widget: QWidget) -> QSize:
    """Return the space that is not available for text."""
    return widget.size() - widget.viewport().size() if isinstance(widget, QAbstractScrollArea) else QSize()


def test_the_titles_of_pages_stand_at_one_height(qtbot: QtBot, away: Desk) -> None:
    def height(*beside: QWidget) -> float:
        page = Page(away.services, "Title")
        qtbot.addWidget(page)
        for widget in beside:
            page.head.addWidget(widget)
        page.resize(900, 400)
        page.show()
        return page.title.geometry().center().y()

    for scale in SCALES:
        away.services.theme.choose(Scheme.LIGHT, scale)
        alone = height()
        choice = QToolButton()
        choice.setText("Map")
        set_role(choice, "choice")
        assert height(QLabel("Kept")) == alone
        assert height(button("Test", role="primary"), choice) == alone
        assert height(button("Undo", role="link")) == alone


def test_a_field_gives_way_before_a_line_is_broken(qtbot: QtBot, away: Desk) -> None:
    field, box = QLineEdit(), QComboBox()
    window = QWidget()
    qtbot.addWidget(window)
    window.setLayout(Flow(field, box, gap=0))
    window.show()
    room = field.sizeHint().width() + box.sizeHint().width()
    window.resize(room - 10, 200)
    assert box.y() > 0
    field.setMinimumWidth(field.sizeHint().width() - 20)
    window.resize(room - 9, 200)
    qtbot.waitUntil(lambda: box.y() == field.y())
    assert field.width() == room - 9 - box.sizeHint().width()
    window.resize(room - 21, 200)
    qtbot.waitUntil(lambda: box.y() > field.y())
