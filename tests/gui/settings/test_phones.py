"""Settings, Phones, over a real node: turned on, a device that joins by the code that is shown, its removal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.settings.phones import AddPhoneDialog, PhoneSettings, RemovePhoneDialog
from app.gui.settings.settings_group import Setting
from app.network.tls import upstream_context
from tests.gateway.phones.phone_door import Door, phone_door
from tests.gui.desk import Desk, desk, follow


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with phone_door(tmp_path_factory.mktemp("phones")) as made:
        yield made


@pytest.fixture
def at_door(qtbot: QtBot, qapp: QApplication, door: Door) -> Iterator[Desk]:
    made = desk(qapp, door.node.root)
    follow(qtbot, made.services)
    yield made
    made.services.pool.stop()
    made.services.lock.close()


@pytest.fixture
def page(qtbot: QtBot, at_door: Desk, door: Door) -> PhoneSettings:
    door.control("POST", "/phones", {"on": False})
    made = PhoneSettings(at_door.services)
    qtbot.addWidget(made)
    made.show()
    made.refresh()
    qtbot.waitUntil(lambda: made.address.text() == "Off", timeout=5000)
    return made


def is_shown(row: Setting) -> bool:
    return not row.is_removed


def dialog(qtbot: QtBot, page: PhoneSettings) -> AddPhoneDialog:
    QTest.mouseClick(page.add_device, Qt.MouseButton.LeftButton)
    (made,) = page.window().findChildren(AddPhoneDialog)
    qtbot.waitUntil(lambda: made.code.text() != "", timeout=5000)
    return made


def test_from_off_to_a_device_and_back(qtbot: QtBot, page: PhoneSettings, door: Door) -> None:
    said: list[str] = []
    page.told.connect(lambda words, _: said.append(words))
    assert not page.add_device.isEnabled()
    QTest.mouseClick(page.on, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.address.text() == f"{door.base}/chat/", timeout=5000)
    shown = dialog(qtbot, page)
    assert shown.by_hand.text() == f"Or open {door.base}/chat/ on the device and enter this code:"
    assert shown.left.text().startswith("Valid for ")
    fingerprint = door.control("GET", "/phones")["fingerprint"]
    assert shown.fingerprint.text().replace(" ", ":") == fingerprint
    assert page.fingerprint.text() == shown.fingerprint.text()
    with httpx.Client(verify=upstream_context(door.pem)) as phone:
        joined = phone.post(f"{door.base}/chat/join", json={"code": shown.code.text(), "name": "Anna & <b>Ben</b>"})
        assert joined.status_code == 200
        qtbot.waitUntil(lambda: "Anna & <b>Ben</b> is connected." in said, timeout=5000)  # and the dialog is closed
        qtbot.waitUntil(lambda: len(page.rows) == 1, timeout=5000)
        ((device, row),) = page.rows.items()
        assert row.title.text() == "Anna & <b>Ben</b>"
        assert "not used yet" in row.about.text()
        assert not is_shown(page.none)

        QTest.mouseClick(page.removals[device], Qt.MouseButton.LeftButton)
        (asks,) = page.window().findChildren(RemovePhoneDialog)
        assert asks.act.text() == "Remove Anna && <b>Ben</b>"
        QTest.mouseClick(asks.act, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: said[-1] == "Anna & <b>Ben</b> may no longer chat here.", timeout=5000)
        assert not is_shown(row)
        assert is_shown(page.none)
        headers = {"Authorization": f"Bearer {joined.json()['token']}"}
        assert phone.get(f"{door.base}/chat/v1/models", headers=headers).status_code == 401


def test_a_closed_dialog_makes_its_code_void(qtbot: QtBot, page: PhoneSettings, door: Door) -> None:
    QTest.mouseClick(page.on, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(page.add_device.isEnabled, timeout=5000)
    shown = dialog(qtbot, page)
    assert door.control("GET", "/phones")["code_seconds"] > 0
    shown.reject()
    qtbot.waitUntil(lambda: door.control("GET", "/phones")["code_seconds"] == 0, timeout=5000)


def test_a_code_that_was_missed_too_often_is_taken_away_and_another_is_offered(
    qtbot: QtBot, page: PhoneSettings, door: Door
) -> None:
    QTest.mouseClick(page.on, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(page.add_device.isEnabled, timeout=5000)
    shown = dialog(qtbot, page)
    before = shown.code.text()
    door.control("DELETE", "/phones/code")
    qtbot.waitUntil(lambda: "expired" in shown.left.text(), timeout=5000)
    assert shown.code.text() == ""
    QTest.mouseClick(shown.new, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: shown.code.text() not in ("", before), timeout=5000)
    shown.reject()


def test_the_picture_holds_the_address_and_the_code(qtbot: QtBot, page: PhoneSettings, tmp_path: Path) -> None:
    QTest.mouseClick(page.on, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(page.add_device.isEnabled, timeout=5000)
    shown = dialog(qtbot, page)
    picture = shown.picture.grab().toImage()
    assert picture.width() == picture.height() > 150
    shades = {picture.pixelColor(x, y).name() for x in range(0, 200, 3) for y in range(0, 200, 3)}
    assert shades == {"#ffffff", "#000000"}
    shown.reject()
