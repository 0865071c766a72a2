"""Tests that a new chat begins with the choices in Settings, and sends them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.gui.app.preferences import CTRL_ENTER, SEND_KEY, SYSTEM
from app.gui.chat.chat_page import ChatPage
from tests.gui.desk import Desk


def test_a_new_chat_begins_with_them(qtbot: QtBot, away: Desk) -> None:
    preferences = away.services.preferences
    preferences.keep(SYSTEM, "Answer in German.")
    preferences.keep("chat/temperature", 0.3)
    page = ChatPage(away.services)
    qtbot.addWidget(page)
    assert page.chat.system == "Answer in German."
    assert dict(page.chat.sampling) == {"temperature": 0.3}
    page.history.close()


def test_enter_begins_a_new_line_where_ctrl_enter_sends(qtbot: QtBot, away: Desk) -> None:
    page = ChatPage(away.services)
    qtbot.addWidget(page)
    field, sent = page.composer.field, list[bool]()
    field.sent.disconnect()
    field.sent.connect(lambda: sent.append(True))
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert sent == [True]
    away.services.preferences.keep(SEND_KEY, CTRL_ENTER)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert sent == [True]
    assert field.toPlainText() == "\n"
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert sent == [True, True]
    page.history.close()
