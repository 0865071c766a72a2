"""Settings, Local API, over a real node: turned on, copied, shown, rotated, moved, turned off."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QLocale, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.api import chat_api
from app.decoding import convert
from app.gui.look import formats
from app.gui.settings.local_api import USUAL_PORT, LocalApi
from app.gui.settings.settings_group import Setting
from app.gui.settings.upstreams import (
    MOST_CERTIFICATE_BYTES,
    AddServerDialog,
    MeasureServerDialog,
    RemoveServerDialog,
    ResetCountDialog,
)
from tests.gateway.conftest import free_port
from tests.gui.desk import Desk


@pytest.fixture
def page(qtbot: QtBot, at_lone: Desk) -> LocalApi:
    made = LocalApi(at_lone.services)
    qtbot.addWidget(made)
    made.show()
    made.refresh()
    qtbot.waitUntil(lambda: made.address.text() != "", timeout=5000)
    return made


def press(page: LocalApi, name: str) -> None:
    (button,) = [push_button for push_button in page.findChildren(QPushButton) if push_button.accessibleName() == name]
    assert button.isEnabled(), name
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def test_from_off_to_a_copied_key_and_back(qtbot: QtBot, page: LocalApi, at_lone: Desk) -> None:
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
    press(page, "Copy the API address")
    assert QGuiApplication.clipboard().text() == page.address.text()

    before = page.key.text()
    press(page, "Create a new API key")
    qtbot.waitUntil(lambda: page.key.text() != before, timeout=5000)
    assert said[-1] == ("New key created. The old one no longer works.", "info")

    QTest.mouseClick(page.may_load, Qt.MouseButton.LeftButton)
    QTest.mouseClick(page.ollama_open, Qt.MouseButton.LeftButton)
    results: list[dict[str, object]] = []

    def is_saved() -> bool:
        at_lone.services.client.get("/api", results.append)
        qtbot.wait(50)
        return bool(results and results[-1]["may_load"] and results[-1]["ollama_open"])

    qtbot.waitUntil(is_saved)
    page.refresh()
    qtbot.waitUntil(lambda: page.may_load.isChecked() and page.ollama_open.isChecked(), timeout=5000)
    page.reset()
    qtbot.waitUntil(lambda: page.address.text() == "Off", timeout=5000)
    assert not any(switch.isChecked() for switch in (page.on, page.may_load, page.ollama_open))
    assert page.port.value() == USUAL_PORT
    assert page.key.text() == ""


TOLD = {
    "on": True, "may_load": False, "ollama_open": False, "lan": True, "port": 47114, "listening": False,
    "address": None, "listens_at": None, "at_once": 8, "tokens_a_minute": 500, "lan_addresses": [],
    "upstreams": [{"name": "barn", "on": True, "spent_tokens": 1_200, "cap_tokens": 9_000}],
    "keys": ["default", "helper"], "limits": {"helper": {"at_once": 2}}, "host_names": [], "origins": [],
}  # fmt: skip


def titles(page: LocalApi) -> list[str]:
    """Return the headings and titles of settings on the page, from its top."""
    result = {row.title.text(): row.mapTo(page, QPoint(0, 0)).y() for row in rows(page)}
    for label in page.findChildren(QLabel):
        if label.parentWidget() is page and label.isVisibleTo(page):
            result[label.text()] = label.mapTo(page, QPoint(0, 0)).y()
    return sorted(result, key=lambda name: result[name])


def rows(page: LocalApi) -> list[Setting]:
    return [setting for setting in page.findChildren(Setting) if setting.isVisibleTo(page)]


def test_rows_that_come_later_stand_under_their_own_heading(qtbot: QtBot, at_lone: Desk) -> None:
    page = LocalApi(at_lone.services)
    qtbot.addWidget(page)
    page.show()
    limits, servers = "Limits for individual keys", "Other servers"
    assert limits not in titles(page)
    page._tell(convert(TOLD | {"upstreams": [], "keys": ["default"]}, chat_api.ChatApi))
    page._tell(convert(TOLD, chat_api.ChatApi))
    QApplication.processEvents()
    rights = ["barn may answer my own questions", "barn may continue interrupted answers"]
    ends = titles(page)[-8:]
    assert ends == [limits, "default", "helper", servers, "Another server may answer", "barn", *rights]
    assert titles(page).count(limits) == 1
    page._tell(convert(TOLD | {"upstreams": [], "keys": []}, chat_api.ChatApi))
    assert limits not in titles(page)


def test_a_key_that_comes_after_it_was_turned_off_is_not_shown(qtbot: QtBot, away: Desk) -> None:
    page = LocalApi(away.services)
    qtbot.addWidget(page)
    keys = {"keys": [{"name": "default", "key": "ph-1"}]}
    page._tell(
        convert(
            TOLD | {"listening": True, "listens_at": 47114, "address": "http://127.0.0.1:47114/v1"}, chat_api.ChatApi
        )
    )
    page._tell_keys(convert(keys, chat_api.ApiKeys))
    assert page.key.text() == "ph-1"
    page._tell(convert(TOLD, chat_api.ChatApi))
    page._tell_keys(convert(keys, chat_api.ApiKeys))
    assert page.key.text() == ""


def test_a_search_shows_no_row_of_what_is_gone_and_news_show_no_other(qtbot: QtBot, at_lone: Desk) -> None:
    page = LocalApi(at_lone.services)
    qtbot.addWidget(page)
    page._tell(convert(TOLD, chat_api.ChatApi))
    page.search(["helper"])
    assert [row.title.text() for row in rows(page)] == ["helper"]
    page._tell(convert(TOLD, chat_api.ChatApi))
    assert [row.title.text() for row in rows(page)] == ["helper"]
    page._tell(convert(TOLD | {"upstreams": [], "keys": ["default"]}, chat_api.ChatApi))
    page.search([])
    assert not {"barn", "helper"} & {row.title.text() for row in rows(page)}


def test_a_reset_turns_servers_and_limits_off_and_is_said_when_it_is_done(
    qtbot: QtBot, at_lone: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[tuple[str, object, Callable[[object], None]]] = []

    def call(_: str, path: str, body: object, done: Callable[[object], None], *__: object, **types: object) -> None:
        requests.append((path, body, done))

    page = LocalApi(at_lone.services)
    qtbot.addWidget(page)
    page._tell(convert(TOLD, chat_api.ChatApi))
    said: list[str] = []
    page.told.connect(lambda words, _: said.append(words))
    monkeypatch.setattr(at_lone.services.client, "call", call)
    page._reset.click()
    no_limits = {"name": "helper", "at_once": None, "tokens_a_minute": None}
    assert [group[:2] for group in requests[1:]] == [("/api/limits", no_limits), ("/api/upstreams/barn", {"on": False})]
    for _, _, done in requests[:3]:
        assert not said
        done(convert(TOLD, chat_api.ChatApi))
    first = "Local API was reset to its defaults."
    assert said == [f"{first} Your API keys and other servers are kept, but the servers are turned off."]


def test_the_network_limits_and_other_servers(
    qtbot: QtBot, page: LocalApi, at_lone: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    result: dict[str, Any] = {
        "on": True, "may_load": False, "ollama_open": False, "lan": True, "port": 47114, "listening": False,
        "address": None, "listens_at": None, "at_once": 8, "tokens_a_minute": 500,
        "lan_addresses": ["https://192.0.2.2:47124/v1"], "host_names": [], "origins": [],
        "upstreams": [{"name": "barn", "on": True, "spent_tokens": 1_200, "cap_tokens": 9_000}],
    }  # fmt: skip
    page._tell(convert(result, chat_api.ChatApi))
    assert (page.lan.isChecked(), page.at_once.value(), page.tokens.value()) == (True, 8, 500)
    words = [setting.about.text() for setting in page.findChildren(Setting)]
    assert any("https://192.0.2.2:47124/v1. Requires TLS and a key" in word for word in words)
    page._tell(convert(result | {"lan": False}, chat_api.ChatApi))  # the server is there for phones
    assert not any("https://192.0.2.2" in setting.about.text() for setting in page.findChildren(Setting))
    for language, spent in (("en", "1,200 of 9,000"), ("de", "1.200 of 9.000")):
        monkeypatch.setattr(formats, "QLocale", partial(QLocale, language))
        page._tell(convert(result, chat_api.ChatApi))
        words = [setting.about.text() for setting in page.findChildren(Setting)]
        assert any(f"{spent} tokens used" in word for word in words)
    reached = {**result["upstreams"][0], "last_contact": 1_790_000_000.0}
    for items, at in ((result["upstreams"], "Not reached since"), ([reached], "Last reached at")):
        page._tell(convert({**result, "upstreams": items}, chat_api.ChatApi))
        words = [setting.about.text() for setting in page.findChildren(Setting)]
        assert any(word.startswith(at) for word in words)
    (barn,) = [setting for setting in page.findChildren(Setting) if setting.title.text() == "barn"]
    page._tell(convert({**result, "upstreams": [], "lan_addresses": []}, chat_api.ChatApi))
    assert not barn.isVisibleTo(page)
    page.refresh()
    qtbot.waitUntil(lambda: page.tokens.value() == 0, timeout=5000)  # as the node has it
    page.tokens.setValue(700)
    page.at_once.setValue(4)
    page.refresh()
    qtbot.waitUntil(lambda: (page.at_once.value(), page.tokens.value()) == (4, 700), timeout=5000)
    page.reset()
    qtbot.waitUntil(lambda: (page.at_once.value(), page.tokens.value()) == (32, 0), timeout=5000)


def test_another_server_is_added_tested_and_removed_and_its_key_is_shown_nowhere(qtbot: QtBot, page: LocalApi) -> None:
    """This node's own API stands for the other server."""
    said: list[tuple[str, str]] = []
    page.told.connect(lambda words, kind: said.append((words, kind)))
    page.port.setValue(free_port())
    QTest.mouseClick(page.on, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.key.text().startswith("ph-"), timeout=5000)
    page.upstreams.add.click()
    sheet = page.findChild(AddServerDialog)
    assert sheet is not None
    assert sheet.key.echoMode() is QLineEdit.EchoMode.Password
    assert not sheet.act.isEnabled()
    sheet.name.setText("barn")
    sheet.url.setText("http://example.org/v1")
    sheet.models.setText("far=guide, near=no-such")
    sheet.key.setText(page.key.text())
    sheet.act.click()
    qtbot.waitUntil(lambda: "is not an address that can be used here" in sheet.notice.sentence, timeout=5000)
    sheet.url.setText(page.address.text())
    sheet.act.click()
    words = "barn responds, but doesn't have no-such."
    qtbot.waitUntil(lambda: (words, "error") in said, timeout=10_000)
    row = next(setting for setting in page.findChildren(Setting) if setting.title.text() == "barn")
    assert row.isVisibleTo(page)
    shown = [line_edit.text() for line_edit in row.findChildren(QLineEdit)]
    assert page.key.text() not in " ".join(shown)
    count = page.upstreams.counts["barn"]
    assert not count.isVisibleTo(page), "it has all its tokens yet"
    barn = {"name": "barn", "on": True, "cap_tokens": 9_000}
    for lost in ({"spent_tokens": 9_000}, {"spent_tokens": 0, "is_counted": False}):
        page.upstreams.show_servers([convert(barn | lost, chat_api.Upstream)])
        assert count.isVisibleTo(page)
    assert "was lost, so nothing is sent there until you reset the count." in row.about.text()
    count.click()
    anew = page.findChild(ResetCountDialog)
    assert anew is not None
    assert f"the server may use another {formats.number(9_000)} tokens." in anew.sentence.text()
    anew.act.click()
    qtbot.waitUntil(lambda: ("The token count for barn was reset.", "info") in said, timeout=5000)
    assert not count.isVisibleTo(page)
    measure = page.upstreams.measures["barn"]
    assert not measure.isVisibleTo(page), "only a server that is on is measured"
    page.upstreams._turn("barn", on=True)
    qtbot.waitUntil(lambda: measure.isVisibleTo(page), timeout=5000)
    may_chat, right = page.upstreams.rights["barn"]["chats"]
    assert (right.isVisibleTo(page), may_chat.isChecked()) == (True, False)
    page.upstreams._allow("barn", "chats", on=True)
    qtbot.waitUntil(may_chat.isChecked, timeout=5000)  # as the node answers
    measure.click()
    cost = page.findChild(MeasureServerDialog)
    assert cost is not None
    assert f"This uses up to {formats.number(3_000)} tokens of the server's limit" in cost.sentence.text()
    cost.act.click()
    qtbot.waitUntil(lambda: said[-1][0].startswith("barn was measured: far, first token after"), timeout=60_000)
    qtbot.waitUntil(lambda: "far, first token after" in row.about.text(), timeout=5000)
    page.upstreams.removals["barn"].click()
    question = page.findChild(RemoveServerDialog)
    assert question is not None
    question.act.click()
    words = "barn and its key were removed."
    qtbot.waitUntil(lambda: (words, "info") in said, timeout=5000)
    assert not row.isVisibleTo(page)
    page.reset()
    qtbot.waitUntil(lambda: page.address.text() == "Off", timeout=5000)


def test_a_certificate_is_read_from_a_file_or_refused(qtbot: QtBot, away: Desk, tmp_path: Path) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    sheet = AddServerDialog(away.services, (), lambda *_: None, parent)
    (tmp_path / "barn.pem").write_text("-----BEGIN CERTIFICATE-----", "ascii")
    sheet.trust(tmp_path / "barn.pem")
    assert sheet.trusted.text() == "Trusts only the certificate in barn.pem."
    sheet.trust(tmp_path / "nothing.pem")
    assert "nothing.pem cannot be read" in sheet.notice.sentence
    sheet.notice.clear()
    (tmp_path / "long.pem").write_text("-" * (MOST_CERTIFICATE_BYTES + 1), "ascii")
    sheet.trust(tmp_path / "long.pem")
    assert "long.pem cannot be read" in sheet.notice.sentence
    assert sheet.trusted.text() == "Trusts only the certificate in barn.pem."
    sheet.close()


def test_a_server_takes_no_name_of_another_one_and_is_added_once(
    qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Running:
        running = True

        def cancel(self) -> None:
            """The dialog was closed."""

    requests: list[str] = []

    def post(_: str, body: dict[str, str], *__: object, **types: object) -> Running:
        requests.append(body["name"])
        return Running()

    monkeypatch.setattr(away.services.client, "post", post)
    parent = QWidget()
    qtbot.addWidget(parent)
    sheet = AddServerDialog(away.services, ["barn"], lambda *_: None, parent)
    for field, text in ((sheet.name, " barn "), (sheet.url, "https://x/v1"), (sheet.models, "a")):
        field.setText(text)
    sheet.act.click()
    assert not requests
    assert "already a server called barn" in sheet.notice.sentence
    sheet.name.setText("shed")
    sheet.act.click()
    sheet.name.setText("shed too")
    assert requests == ["shed"]
    assert not sheet.act.isEnabled()
    sheet.close()


def test_one_key_may_have_less_than_the_others(qtbot: QtBot, page: LocalApi, at_lone: Desk) -> None:
    page.port.setValue(free_port())
    QTest.mouseClick(page.on, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "default" in page.key_limits.rows, timeout=5000)
    at_once, tokens, row = page.key_limits.rows["default"]
    assert (at_once.text(), tokens.text()) == ("same as other keys", "same as other keys")
    results: list[dict[str, dict[str, int]]] = []

    def limits(at: int | None, a_minute: int | None) -> bool:
        at_lone.services.client.get("/api", lambda never: results.append(never["limits"]))
        qtbot.wait(50)
        own = results[-1].get("default", {}) if results else {}
        return bool(results) and [own.get(name) for name in ("at_once", "tokens_a_minute")] == [
            at, a_minute,
        ]  # fmt: skip

    at_once.setValue(2)
    qtbot.waitUntil(lambda: limits(2, None), timeout=5000)
    tokens.setValue(0)
    qtbot.waitUntil(lambda: limits(2, 0), timeout=5000)
    at_once.setValue(0)
    qtbot.waitUntil(lambda: limits(None, 0), timeout=5000)
    tokens.setValue(-1)
    qtbot.waitUntil(lambda: limits(None, None), timeout=5000)
    page.reset()
    qtbot.waitUntil(lambda: not row.isVisibleTo(page), timeout=5000)


def test_host_names_and_origins_are_allowed_listed_and_removed(qtbot: QtBot, page: LocalApi, at_lone: Desk) -> None:
    hosts, origins = page.access.hosts, page.access.origins
    refused: list[object] = []
    page.failed.connect(refused.append)
    assert page.access.offer.isVisibleTo(page)
    assert not hosts.allow.isEnabled()
    QTest.mouseClick(page.access.offer, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: hosts.names == ["host.docker.internal"], timeout=5000)
    assert not page.access.offer.isVisibleTo(page)
    hosts.edit.setText(" Pool.local ")
    QTest.keyClick(hosts.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: hosts.names == ["host.docker.internal", "pool.local"], timeout=5000)
    assert hosts.edit.text() == ""
    origins.edit.setText("http://localhost:3000/")
    QTest.mouseClick(origins.allow, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: origins.names == ["http://localhost:3000"], timeout=5000)
    assert {"pool.local", "http://localhost:3000"} <= set(titles(page))

    origins.edit.setText("*")
    QTest.mouseClick(origins.allow, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(refused), timeout=5000)
    assert origins.edit.text() == "*"  # to be mended

    press(page, "Remove pool.local")
    qtbot.waitUntil(lambda: hosts.names == ["host.docker.internal"], timeout=5000)
    assert "pool.local" not in titles(page)
    page.reset()
    qtbot.waitUntil(lambda: (hosts.names, origins.names) == ([], []), timeout=5000)
    assert page.access.offer.isVisibleTo(page)
