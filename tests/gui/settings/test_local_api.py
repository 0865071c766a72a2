"""Settings, Local API, over a real node: turned on, copied, shown, rotated, moved, turned off."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from app.gui.settings.local_api import USUAL_PORT, LocalApi
from app.gui.settings.setting import Setting
from tests.gui.desk import Desk
from tests.node.chat_api.conftest import free_port


@pytest.fixture
def page(qtbot: QtBot, at_lone: Desk) -> LocalApi:
    made = LocalApi(at_lone.services)
    qtbot.addWidget(made)
    made.show()
    made.refresh()
    qtbot.waitUntil(lambda: made.address.text() != "", timeout=5000)
    return made


def press(page: LocalApi, name: str) -> None:
    (found,) = [one for one in page.findChildren(QPushButton) if one.accessibleName() == name]
    assert found.isEnabled(), name
    QTest.mouseClick(found, Qt.MouseButton.LeftButton)


def test_from_off_to_a_copied_key_and_back(qtbot: QtBot, page: LocalApi) -> None:
    said: list[tuple[str, str]] = []
    page.told.connect(lambda words, kind: said.append((words, kind)))
    assert (page.on.isChecked(), page.address.text(), page.key.text()) == (False, "Off", "")
    port = free_port()
    page.port.setValue(port)
    QTest.mouseClick(page.on, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.key.text().startswith("ph-"), timeout=5000)
    qtbot.waitUntil(lambda: page.address.text() == f"http://127.0.0.1:{port}/v1", timeout=5000)

    assert page.key.echoMode() is QLineEdit.EchoMode.Password  # nobody reads it over a shoulder
    press(page, "Show the key")
    assert page.key.echoMode() is QLineEdit.EchoMode.Normal
    press(page, "Hide the key")
    assert page.key.echoMode() is QLineEdit.EchoMode.Password
    press(page, "Copy the key")
    assert QGuiApplication.clipboard().text() == page.key.text()
    press(page, "Copy the address of the API")
    assert QGuiApplication.clipboard().text() == page.address.text()

    before = page.key.text()
    press(page, "Make a new key of the API")
    qtbot.waitUntil(lambda: page.key.text() != before, timeout=5000)
    assert said[-1] == ("There is a new key. The one before opens nothing more.", "info")

    QTest.mouseClick(page.may_load, Qt.MouseButton.LeftButton)
    QTest.mouseClick(page.ollama_open, Qt.MouseButton.LeftButton)
    qtbot.wait(300)
    page.refresh()
    qtbot.waitUntil(
        lambda: page.may_load.isChecked() and page.ollama_open.isChecked(), timeout=5000
    )
    page.reset()
    qtbot.waitUntil(lambda: page.address.text() == "Off", timeout=5000)
    assert not any(one.isChecked() for one in (page.on, page.may_load, page.ollama_open))
    assert page.port.value() == USUAL_PORT
    assert page.key.text() == ""


def test_the_network_limits_and_other_servers(qtbot: QtBot, page: LocalApi, at_lone: Desk) -> None:
    told = {
        "on": True, "may_load": False, "ollama_open": False, "lan": True, "port": 47114, "listening": False,
        "address": None, "listens_at": None, "at_once": 8, "tokens_a_minute": 500,
        "lan_addresses": ["https://192.0.2.2:47124/v1"],
        "upstreams": [{"name": "barn", "on": True, "spent_tokens": 1_200, "cap_tokens": 9_000}],
    }  # fmt: skip
    page._tell(told)
    assert (page.lan.isChecked(), page.at_once.value(), page.tokens.value()) == (True, 8, 500)
    words = [setting.about.text() for setting in page.findChildren(Setting)]
    assert any("https://192.0.2.2:47124/v1: over TLS and with a key" in one for one in words)
    assert any("1,200 of 9,000 tokens are spent" in one for one in words)
    (barn,) = [one for one in page.findChildren(Setting) if one.title.text() == "barn"]
    page._tell({**told, "upstreams": [], "lan_addresses": []})
    assert not barn.isVisibleTo(page)
    page.refresh()
    qtbot.waitUntil(lambda: page.tokens.value() == 0, timeout=5000)  # as the node has it
    page.tokens.setValue(700)
    page.at_once.setValue(4)
    page.refresh()
    qtbot.waitUntil(lambda: (page.at_once.value(), page.tokens.value()) == (4, 700), timeout=5000)
    page.reset()
    qtbot.waitUntil(lambda: (page.at_once.value(), page.tokens.value()) == (32, 0), timeout=5000)
