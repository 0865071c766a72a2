"""Help is one key away, on every page."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.gui.app import navigation
from app.gui.app.window import Window
from app.gui.diagnostics.doctor_dialog import DoctorDialog
from app.gui.diagnostics.save_dialog import SaveDialog
from tests.gui.desk import Desk


def test_f1_asks_why_the_other_computer_is_not_seen(qtbot: QtBot, away: Desk) -> None:
    window = Window(away.services, lambda: False, lambda: None)
    qtbot.addWidget(window)
    window.show()
    window.go(navigation.SETTINGS)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=5000)
    QTest.keyClick(window, Qt.Key.Key_F1)
    qtbot.waitUntil(lambda: bool(window.findChildren(DoctorDialog)), timeout=5000)
    (dialog,) = window.findChildren(DoctorDialog)
    qtbot.waitUntil(lambda: dialog.cause is not None, timeout=5000)
    dialog.save()
    (saving,) = dialog.findChildren(SaveDialog)
    qtbot.waitUntil(lambda: bool(saving.files), timeout=5000)
    assert "checks.json" in saving.files
    saving.reject()
    dialog.reject()
