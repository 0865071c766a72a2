"""The whole window: Quit leaves nothing behind that it started."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core.system_errors import system_error
from app.gui.api.node_state import Link
from app.gui.app import navigation
from app.gui.app.application import Application, PoolhouseApplication, QuitDialog, show_failure
from app.gui.app.failure_dialog import FailureDialog
from app.gui.app.window import GOES_ON
from app.gui.welcome.first_page import FirstPage
from app.gui.welcome.welcome import Welcome
from tests.gui.desk import Attached
from tests.gui.speaking import unchanged
from tests.node.pool import TestNode


class Slow(Attached):
    """Its node never gets ready."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.starts = self.ends = 0

    def start(self) -> None:
        self.starts += 1

    def end(self) -> None:
        self.ends += 1

    @property
    def started(self) -> bool:
        return self.starts > self.ends


@pytest.fixture(autouse=True)
def language_of_other_tests(qapp: QApplication) -> Iterator[None]:
    """An application chooses one, for the whole process."""
    with unchanged(qapp):
        yield


def test_quit_ends_a_node_that_still_starts(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []
    monkeypatch.setattr(qapp, "exit", lambda: ended.append(True))
    launcher = Slow(tmp_path)
    made = Application(qapp, launcher)
    qtbot.addWidget(made.window)
    pool = made.services.pool
    assert pool.link is Link.STARTING
    made.quit()
    qtbot.waitUntil(lambda: bool(ended), timeout=5000)
    assert not pool._look.isActive()
    assert (launcher.starts, launcher.ends) == (1, 1)


@pytest.mark.long
def test_quit_leaves_a_node_alone_that_it_did_not_start(
    qtbot: QtBot, qapp: QApplication, lone: TestNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []
    monkeypatch.setattr(qapp, "exit", lambda: ended.append(True))
    made = Application(qapp, Attached(lone.root))
    qtbot.addWidget(made.window)
    qtbot.waitUntil(lambda: made.services.pool.is_there, timeout=5000)
    made.quit()
    qtbot.waitUntil(lambda: bool(ended), timeout=5000)
    status = lone.run("status", "--json")
    assert status.returncode == 0, status.stdout
    assert lone.process.poll() is None


def test_who_quits_by_a_key_is_told_once_that_the_service_goes_on(
    qtbot: QtBot, qapp: QApplication, lone: TestNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []
    monkeypatch.setattr(qapp, "exit", lambda: ended.append(True))
    made = Application(qapp, Attached(lone.root))
    qtbot.addWidget(made.window)
    qtbot.waitUntil(lambda: made.services.pool.is_there, timeout=5000)
    made.services.preferences.forget(GOES_ON)
    (key,) = [
        shortcut
        for shortcut in made.window.findChildren(QShortcut)
        if shortcut.key() == QKeySequence(QKeySequence.StandardKey.Quit)
    ]
    key.activated.emit()
    assert "keeps running" in made.window._told.sentence
    assert ended == []
    key.activated.emit()
    qtbot.waitUntil(lambda: bool(ended), timeout=5000)


def test_quit_asks_before_it_ends_what_is_under_way(
    qtbot: QtBot, qapp: QApplication, lone: TestNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []
    monkeypatch.setattr(qapp, "exit", lambda: ended.append(True))
    made = Application(qapp, Attached(lone.root))
    qtbot.addWidget(made.window)
    qtbot.waitUntil(lambda: made.services.pool.is_there, timeout=5000)
    made.window.go(navigation.CHAT)
    chat = made.window.page(navigation.CHAT)
    monkeypatch.setattr(type(chat), "is_busy", True)
    made.tray.menu.quit.trigger()
    made.tray.menu.quit.trigger()  # once more: it is asked already
    (sheet,) = made.window.findChildren(QuitDialog)
    assert sheet.isVisible()
    assert "These pages are still busy: Chat." in sheet.sentence.text()
    sheet.stay.click()
    qtbot.waitUntil(lambda: made.window.findChild(QuitDialog) is None)
    assert ended == []
    made.tray.menu.quit.trigger()
    made.window.findChildren(QuitDialog)[0].leave.click()
    qtbot.waitUntil(lambda: bool(ended), timeout=5000)


def test_a_log_out_is_not_broken_off_by_a_window_that_would_rather_hide(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS asks every app to quit, and goes on only when each has said yes."""
    assert isinstance(qapp, PoolhouseApplication)
    ended: list[bool] = []
    monkeypatch.setattr(qapp, "exit", lambda: ended.append(True))
    made = Application(qapp, Slow(tmp_path))
    qtbot.addWidget(made.window)
    assert made.window.isVisible()
    event = QEvent(QEvent.Type.Quit)
    qapp.to_quit.connect(made.quit)
    try:
        assert QCoreApplication.sendEvent(qapp, event)
    finally:
        qapp.to_quit.disconnect(made.quit)
    assert event.isAccepted()
    qtbot.waitUntil(lambda: bool(ended))


def test_the_first_step_has_the_keyboard_in_the_name(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qapp, "exit", lambda: None)
    made = Application(qapp, Slow(tmp_path))
    qtbot.addWidget(made.window)
    made.window.activateWindow()
    steps = made.window.findChildren(Welcome)[0]
    page = steps.step
    assert isinstance(page, FirstPage)
    qtbot.waitUntil(page.name.field.hasFocus, timeout=5000)
    steps.end()
    made.quit()


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.EROFS, "The disk can only be read (/home/me: "), (errno.ENOSPC, "The disk is full (/home/me: ")],
)
def test_why_there_is_no_window_is_shown_on_the_screen(qapp: QApplication, number: int, words: str) -> None:
    said: list[str] = []

    def close() -> None:
        box = qapp.activeModalWidget()
        assert isinstance(box, FailureDialog)
        said.append(box.sentence.text())
        box.accept()

    QTimer.singleShot(0, close)
    show_failure(qapp, system_error(OSError(number, os.strerror(number), "/home/me")))
    assert said[0].startswith(words)
