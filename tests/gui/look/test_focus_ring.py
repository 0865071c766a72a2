"""The ring around a list: with keys, and not by a click."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QListWidget, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.gui.look.accessibility import FocusRing
from app.gui.look.theme import LIGHT
from app.gui.widgets.layouts import column
from tests.gui.desk import Desk

SETTLE_MS = 20


def test_a_list_has_a_ring_with_keys_and_not_by_a_click(qtbot: QtBot, qapp: QApplication, away: Desk) -> None:
    ring = FocusRing(qapp)
    window, above, shown = QWidget(), QPushButton("To the list"), QListWidget()
    shown.addItems(["one", "two", "three"])
    above.clicked.connect(shown.setFocus)
    window.setLayout(column(above, shown))
    qtbot.addWidget(window)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(lambda: qapp.focusWindow() is window.windowHandle())
    handle = window.windowHandle()

    def click(on: QWidget) -> None:
        place = on.mapTo(window, QPoint(20, 20))
        QTest.mouseClick(handle, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)

    def is_ringed() -> bool:
        qtbot.wait(SETTLE_MS)
        edge = window.grab().toImage().pixelColor(shown.mapTo(window, QPoint(0, 40)))
        return shown.hasFocus() and edge == QColor(LIGHT.accent)

    seen = []
    click(shown.viewport())
    seen.append(("a click", is_ringed()))
    QTest.keyClick(handle, Qt.Key.Key_Control)  # held for a click on more of them
    seen.append(("a key that is held", is_ringed()))
    QTest.keyClick(handle, Qt.Key.Key_Down)
    seen.append(("a key", is_ringed()))
    click(above)
    seen.append(("from a button that was clicked", is_ringed()))
    above.setFocus()
    QTest.keyClick(handle, Qt.Key.Key_Tab)
    seen.append(("tab", is_ringed()))
    ring.deleteLater()
    assert [label for label, is_seen in seen if is_seen] == ["a key", "tab"]
