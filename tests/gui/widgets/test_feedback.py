"""Tests of the feedback of buttons and rows to pointer and keys: fading looks, and a ring for the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QStringListModel, Qt, QVariantAnimation
from PySide6.QtGui import QEnterEvent, QHoverEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QListView, QWidget
from pytestqt.qtbot import QtBot

from app.gui.look.motion import ALWAYS, NEVER
from app.gui.look.theme import HOVER_MS, set_role
from app.gui.models.model_rows import RowHover
from app.gui.widgets.buttons import ToolButton, button
from app.gui.widgets.layouts import column
from tests.gui.desk import Desk


@pytest.fixture(autouse=True)
def moving(away: Desk) -> Iterator[Desk]:
    """Yield a desk with the window's colors and motion allowed."""
    away.services.motion.choose(NEVER)
    yield away
    away.services.motion.choose(NEVER)


def nav() -> ToolButton:
    made = ToolButton()
    made.setText("Models")
    made.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    set_role(made, "nav")
    return made


def usual() -> QAbstractButton:
    return button("Load")


@pytest.fixture(params=[usual, nav])
def made(request: pytest.FixtureRequest, qtbot: QtBot) -> Iterator[QAbstractButton]:
    """A button, in a window where another one has the focus."""
    window, first = QWidget(), button("First")
    abstract_button: QAbstractButton = request.param()
    qtbot.addWidget(window)
    window.setLayout(column(first, abstract_button))
    window.show()
    first.setFocus()
    qtbot.waitUntil(first.hasFocus)
    yield abstract_button
    window.close()


def enter(abstract_button: QAbstractButton) -> QVariantAnimation:
    at = QPointF(5, 5)
    QApplication.sendEvent(abstract_button, QEnterEvent(at, at, at))
    (fade,) = abstract_button.findChildren(QVariantAnimation)
    return fade


def picture(widget: QWidget) -> QImage:
    return widget.grab().toImage()


def test_the_look_under_the_pointer_comes_step_by_step(made: QAbstractButton) -> None:
    fade, seen = enter(made), list[int]()
    for at in (1, HOVER_MS // 4, HOVER_MS - 1):
        fade.setCurrentTime(at)
        seen.append(picture(made).pixelColor(made.width() - 8, made.height() // 2).green())
    assert fade.duration() == HOVER_MS
    assert len(set(seen)) == 3, seen
    assert seen in (sorted(seen), sorted(seen, reverse=True))


def test_it_goes_from_where_it_was(made: QAbstractButton) -> None:
    fade = enter(made)
    fade.setCurrentTime(HOVER_MS // 4)
    come = fade.currentValue()
    QApplication.sendEvent(made, QEvent(QEvent.Type.Leave))
    assert fade.currentValue() == pytest.approx(come)
    assert fade.endValue() == 0.0


def test_under_reduced_motion_it_is_there_at_once(made: QAbstractButton, moving: Desk) -> None:
    moving.services.motion.choose(ALWAYS)
    fade = enter(made)
    assert fade.state() is QVariantAnimation.State.Stopped
    assert fade.currentValue() == 1.0


@pytest.mark.parametrize("key", [Qt.Key.Key_Shift, Qt.Key.Key_Return])
def test_only_keys_bring_a_ring(made: QAbstractButton, key: Qt.Key) -> None:
    at_rest = picture(made)
    QTest.mouseClick(made, Qt.MouseButton.LeftButton)
    assert made.hasFocus()
    assert picture(made) == at_rest, "a click left a ring behind"
    QTest.keyClick(made, key)
    assert picture(made) != at_rest
    QTest.keyClick(made, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
    assert not made.hasFocus()
    assert picture(made) == at_rest
    QTest.keyClick(made.window().focusWidget(), Qt.Key.Key_Tab)
    assert picture(made) != at_rest


@pytest.fixture
def rows(qtbot: QtBot) -> QListView:
    view = QListView()
    qtbot.addWidget(view)
    view.setModel(QStringListModel(["one", "two", "three"], view))
    view.show()
    return view


def point(view: QListView, row: int) -> None:
    at = QPointF(view.visualRect(view.model().index(row, 0)).center())
    event: Any = QHoverEvent(QEvent.Type.HoverMove, at, at, QPointF(QPoint()))
    QApplication.sendEvent(view.viewport(), event)


def test_a_row_fades_in_while_the_one_before_it_fades_out(rows: QListView, moving: Desk) -> None:
    hover = RowHover(rows)
    index = [rows.model().index(row, 0) for row in range(3)]
    point(rows, 0)
    hover._fade.setCurrentTime(HOVER_MS)
    assert [hover.share(model_index) for model_index in index] == [1, 0, 0]
    point(rows, 1)
    hover._fade.setCurrentTime(HOVER_MS // 4)
    left, over, other = (hover.share(model_index) for model_index in index)
    assert left + over == pytest.approx(1)
    assert 0 < left < 1
    assert other == 0
    moving.services.motion.choose(ALWAYS)
    point(rows, 2)
    assert [hover.share(model_index) for model_index in index] == [0, 0, 1]
    QApplication.sendEvent(rows.viewport(), QEvent(QEvent.Type.HoverLeave))
    assert [hover.share(model_index) for model_index in index] == [0, 0, 0]
