"""A name is asked for as everywhere else: Cancel, and one button that does it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.gui.widgets.dialog import NameDialog
from tests.gui.desk import Desk


def test_a_name_is_told_without_the_blanks_around_it(qtbot: QtBot, away: Desk) -> None:
    messages: list[str] = []
    parent = QWidget()
    qtbot.addWidget(parent)
    parent.resize(960, 600)
    dialog = NameDialog(away.services.theme, "New folder", "Name", messages.append, parent)
    dialog.open()
    QTest.keyClick(dialog.name, Qt.Key.Key_Return)
    dialog.name.setText("   ")
    assert not dialog.act.isEnabled()
    assert not messages
    dialog.name.setText(" Household ")
    QTest.keyClick(dialog.name, Qt.Key.Key_Return)
    assert messages == ["Household"]
    assert not dialog.isVisible()
