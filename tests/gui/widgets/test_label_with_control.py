"""Words with a control beside them or below, rows that wrap, columns that take what is left."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QApplication, QPushButton, QTableView, QWidget
from pytestqt.qtbot import QtBot

from app.gui.look.theme import Scheme, Theme
from app.gui.widgets.flow import Beside, Flow
from app.gui.widgets.labels import bound_width, keep_width, paragraph
from app.gui.widgets.layouts import Columns

WIDE, NARROW = 900, 200


def held(qtbot: QtBot, layout: Beside | Flow, wide: int) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    made.setLayout(layout)
    made.resize(wide, max(layout.heightForWidth(wide), 1))
    made.show()
    QApplication.processEvents()
    return made


@pytest.mark.parametrize(("wide", "beside"), [(WIDE, True), (NARROW, False)])
def test_a_control_goes_below_words_that_have_no_room(qtbot: QtBot, wide: int, beside: bool) -> None:
    words, control = paragraph("A sentence of some length that can wrap."), QPushButton("Press it")
    holder = held(qtbot, Beside(words, control), wide)
    assert (control.geometry().left() > words.geometry().right()) is beside
    assert (control.geometry().top() > words.geometry().bottom()) is not beside
    assert holder.rect().contains(control.geometry())
    assert words.height() >= words.heightForWidth(words.width())


def test_controls_that_are_hidden_take_no_room(qtbot: QtBot) -> None:
    words, button, other = paragraph("Words"), QPushButton("One"), QPushButton("Other")
    other.hide()
    holder = held(qtbot, Beside(words, button, other), WIDE)
    assert button.geometry().right() == holder.rect().right()


def test_a_row_keeps_the_rest_at_the_right_until_it_wraps(qtbot: QtBot) -> None:
    buttons = [QPushButton(text) for text in ("Title", "First", "Second")]
    holder = held(qtbot, Flow(*buttons, right_from=1), WIDE)
    assert buttons[0].geometry().left() == 0
    assert buttons[2].geometry().right() == holder.rect().right()
    assert buttons[1].geometry().left() > WIDE / 2
    holder.resize(buttons[0].width() + buttons[1].width() + 20, 300)
    QApplication.processEvents()
    assert buttons[2].geometry().left() == 0
    assert buttons[2].geometry().top() > buttons[0].geometry().bottom()


def test_a_column_takes_what_is_left_and_a_wide_table_scrolls(qtbot: QtBot) -> None:
    model, values = QStandardItemModel(1, 3), list[int]()
    for place, text in enumerate(("short", "a name of some length", "the last column")):
        model.setItem(0, place, QStandardItem(text))
    table = QTableView()
    qtbot.addWidget(table)
    table.setModel(model)
    columns = Columns(table, 1, lambda: values.append(columns.bar_height))
    table.resize(WIDE, 200)
    table.show()
    QApplication.processEvents()
    header = table.horizontalHeader()
    assert header.length() == table.viewport().width()
    table.resize(NARROW, 200)
    QApplication.processEvents()
    assert header.length() > table.viewport().width()
    assert header.sectionSize(1) >= table.sizeHintForColumn(1)
    assert values[-1] > 0
    assert table.horizontalScrollBarPolicy() is Qt.ScrollBarPolicy.ScrollBarAsNeeded


def test_widths_follow_the_size_of_text(qtbot: QtBot, qapp: QApplication) -> None:
    theme, kept, bound = Theme(qapp, Scheme.LIGHT, 1.0), QWidget(), QWidget()
    qtbot.addWidget(kept)
    qtbot.addWidget(bound)
    keep_width(theme, kept, 100)
    bound_width(theme, bound, 100)
    theme.choose(Scheme.LIGHT, 2.0)
    assert (kept.minimumWidth(), kept.maximumWidth(), bound.maximumWidth()) == (200, 200, 200)
    theme.choose(Scheme.LIGHT, 1.0)
    assert (kept.minimumWidth(), bound.maximumWidth()) == (100, 100)
