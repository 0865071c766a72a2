"""Settings, Privacy: the switch that encrypts the chats, what it says, and how far it is."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.api import chat_api, computer
from app.decoding import convert
from app.gui.api.node_client import Json
from app.gui.chat.history import history_conversion
from app.gui.chat.history.history_file import FILE
from app.gui.look import formats
from app.gui.pool.machine_words import moment
from app.gui.settings import privacy as privacy_page
from app.gui.settings.privacy import EncryptionDialog, Privacy
from backends.worker.confine import supported_mechanisms
from tests.findings import tells
from tests.gui.chat.talk import talked
from tests.gui.desk import Desk

WITHIN_MS = 10_000


@pytest.fixture
def privacy(qtbot: QtBot, at_lone: Desk) -> Iterator[Privacy]:
    """The page, with one chat; in the end chats are readable again."""
    lock = at_lone.services.lock
    talked(lock.history, "What is a cormorant?")
    made = Privacy(at_lone.services)
    qtbot.addWidget(made)
    made.resize(700, 900)
    made.show()
    made.refresh()
    qtbot.waitUntil(lambda: made.key.text() != "")
    yield made
    if lock.is_on:
        with qtbot.waitSignal(lock.encryption_changed, timeout=WITHIN_MS):
            lock.set_encryption(False)


def press(privacy: Privacy) -> None:
    QTest.mouseClick(privacy.encrypt, Qt.MouseButton.LeftButton)


def test_every_connection_says_when_it_was_last(qtbot: QtBot, privacy: Privacy) -> None:
    pool = privacy.services.pool
    qtbot.waitUntil(lambda: privacy.upstreams.text() == "No server is turned on", timeout=WITHIN_MS)
    before = pool.snapshot
    assert privacy.hub.text() == "Not used since the background service started"
    assert privacy.machines.text() == "None yet"
    rest: list[Json] = [
        {"id": "x", "name": "attic", "online": False, "seen_at": 1_700_000_000.0},
        {"id": "y", "name": "barn", "online": True, "seen_at": None},
        {"id": "z", "name": "loft", "online": False, "seen_at": None},
    ]
    pool.snapshot = before | {
        "hub": {"last_contact": 1_700_000_000.0},
        "machines": before["machines"] | {other["id"]: other for other in rest},
    }
    pool.changed.emit()
    last = f"Last: {moment(1_700_000_000.0)}"
    assert privacy.hub.text() == last
    contacts = f"attic: {last}; barn: connected now; loft: not seen yet"
    assert privacy.machines.text() == contacts
    privacy._tell_upstreams(
        convert({"upstreams": [{"name": "big", "on": True}, {"name": "b", "on": False}]}, chat_api.ChatApi)
    )
    assert privacy.upstreams.text() == "big: Not used since the background service started"
    assert privacy._unasked.isVisible()
    assert not privacy._asked.isVisible()  # nobody is named that could be asked
    result = {"place": "api.github.com/a/b", "daily": False, "last_contact": 1_700_000_000.0}
    privacy._tell_updates(convert(result, computer.Updates))
    assert privacy.updates.text() == f"Last: {moment(1_700_000_000.0)}"
    assert "only when you click" in privacy._asked.about.text()
    assert privacy._asked.isVisible()
    assert not privacy._unasked.isVisible()
    pool.snapshot = before
    pool.changed.emit()


def test_the_switch_encrypts_and_says_so(qtbot: QtBot, privacy: Privacy) -> None:
    lock, reports = privacy.services.lock, list[tuple[str, str]]()
    privacy.told.connect(lambda *words: reports.append(words))
    file = privacy.services.folder / FILE
    assert not privacy.encrypt.isChecked()
    assert privacy.chat_key.text() == "None: your chats are not encrypted"
    assert "No keyring was found" in privacy.encrypted.about.text()
    press(privacy)
    qtbot.waitUntil(lambda: bool(reports), timeout=WITHIN_MS)
    assert reports == [("Your chats are encrypted now.", "info")]
    assert privacy.encrypt.isChecked()
    assert privacy.encrypt.isEnabled()
    assert privacy.focusWidget() is privacy.encrypt  # not lost while it had to wait
    assert privacy.chat_key.text() == "In a file only you can read"
    assert not privacy.findChildren(EncryptionDialog) or not any(
        dialog.isVisible() for dialog in privacy.findChildren(EncryptionDialog)
    )
    assert b"cormorant" not in file.read_bytes()
    press(privacy)
    qtbot.waitUntil(lambda: len(reports) == 2, timeout=WITHIN_MS)
    assert reports[1] == ("Your chats are no longer encrypted.", "info")
    assert not privacy.encrypt.isChecked()
    assert lock.history.search("cormorant")


def test_what_was_kept_aside_earlier_is_named(qtbot: QtBot, privacy: Privacy) -> None:
    messages: list[str] = []
    privacy.told.connect(lambda words, _: messages.append(words))
    folder = privacy.services.folder
    aside = folder / "history-damaged-1.sqlite3"
    shutil.copy(folder / FILE, aside)
    press(privacy)
    qtbot.waitUntil(lambda: bool(messages), timeout=WITHIN_MS)
    assert aside.name in messages[0]
    shutil.copy(folder / FILE, aside)  # an encrypted one
    assert privacy.services.lock.readable_leftovers() == []
    aside.unlink()


def test_what_takes_long_shows_how_far_it_is(qtbot: QtBot, privacy: Privacy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privacy_page, "SOON_MS", 0)
    go_on, sweep = threading.Event(), history_conversion._sweep

    def slow(db: sqlite3.Connection) -> None:
        assert go_on.wait(10)
        sweep(db)

    monkeypatch.setattr(history_conversion, "_sweep", slow)
    lock = privacy.services.lock
    with qtbot.waitSignal(lock.encryption_changed, timeout=WITHIN_MS):
        press(privacy)
        try:
            qtbot.waitUntil(lambda: any(dialog.isVisible() for dialog in dialogs(privacy)))
            (dialog,) = dialogs(privacy)
            assert dialog.isModal()
            assert not privacy.encrypt.isEnabled()
            qtbot.waitUntil(lambda: dialog.bar.value() == dialog.bar.maximum() > 0)
            QTest.keyClick(dialog, Qt.Key.Key_Escape)
            assert dialog.isVisible()
        finally:
            go_on.set()
    qtbot.waitUntil(lambda: not dialogs(privacy))
    assert privacy.encrypt.isEnabled()


def test_how_far_what_reads_model_files_is_shut_in(qtbot: QtBot, privacy: Privacy) -> None:
    qtbot.waitUntil(lambda: privacy.walls.text() != "", timeout=WITHIN_MS)
    level = supported_mechanisms().walls.level
    words = {"full": "Fully on", "partial": "Partly on", "none": "Not available"}
    assert privacy.walls.text() == words[level]
    for other, said in (words | {"unknown": "Unknown"}).items():
        privacy._tell_walls(
            convert({"level": other, **tells("It is so.", "cause"), **tells("Do this.", "cure")}, computer.Walls)
        )
        assert privacy.walls.text() == said
        assert privacy._walled.about.text() == "It is so. Do this."


def test_where_nothing_can_be_asked_the_switch_goes_back(qtbot: QtBot, away: Desk) -> None:
    made = Privacy(away.services)
    qtbot.addWidget(made)
    failed: list[object] = []
    made.failed.connect(failed.append)
    made.show()
    made.encrypt.click()
    assert len(failed) == 1
    assert not made.encrypt.isChecked()


def dialogs(privacy: Privacy) -> list[EncryptionDialog]:
    return privacy.findChildren(EncryptionDialog)


def test_other_servers_are_named_with_their_last_contact(qtbot: QtBot, away: Desk) -> None:
    made = Privacy(away.services)
    qtbot.addWidget(made)
    at = 1_790_000_000.0
    items = [
        {"name": "barn", "on": True, "last_contact": at},
        {"name": "loft", "on": True, "last_contact": None},
        {"name": "off", "on": False, "last_contact": None},
    ]
    made._tell_upstreams(convert({"upstreams": items}, chat_api.ChatApi))
    never = "Not used since the background service started"
    assert made.upstreams.text() == f"barn: Last: {moment(at)}; loft: {never}"
    made._tell_upstreams(convert({"upstreams": items[2:]}, chat_api.ChatApi))
    assert made.upstreams.text() == "No server is turned on"


def test_kept_prompts_are_switched_limited_and_deleted(qtbot: QtBot, privacy: Privacy, at_lone: Desk) -> None:
    qtbot.waitUntil(lambda: privacy.kept_size.text() != "", timeout=WITHIN_MS)
    assert privacy.keep_prompts.isChecked()
    assert not privacy.delete_prompts.isEnabled()  # there are none
    folder = at_lone.services.launcher.home / "kept" / "own"
    folder.mkdir(parents=True)
    (folder / ("a" * 64)).write_bytes(bytes(5 << 20))
    privacy.refresh()
    qtbot.waitUntil(privacy.delete_prompts.isEnabled, timeout=WITHIN_MS)
    assert privacy.kept_size.text().startswith("5")
    privacy.most_prompts.setCurrentIndex(2)
    privacy.most_prompts.activated.emit(2)
    qtbot.waitUntil(lambda: privacy.kept_size.text().endswith(formats.size(2 << 30)), timeout=WITHIN_MS)
    QTest.mouseClick(privacy.delete_prompts, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not privacy.delete_prompts.isEnabled(), timeout=WITHIN_MS)
    assert not folder.exists()
    QTest.mouseClick(privacy.keep_prompts, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not privacy.most_prompts.isEnabled(), timeout=WITHIN_MS)
