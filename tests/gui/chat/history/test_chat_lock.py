"""The lock of the chats over a real node: turned on and off, opened at the start, locked without the key."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.cli import main
from app.core.chat import path
from app.core.errors import AppError
from app.core.reasons import said
from app.gui.app.preferences import SYSTEM, Preferences
from app.gui.chat.chat_page import LAST_CHAT_KEY, ChatPage
from app.gui.chat.history.chat_lock import CLOSED_FOLDERS_KEY, ENCRYPTED_KEY, ChatLock
from app.gui.chat.history.history_cipher import PlainCodec
from app.gui.chat.history.history_file import FILE
from app.gui.chat.presets import Presets
from app.gui.settings.chat import Chat as SettingsOfChats
from tests.gui.chat.talk import talked
from tests.gui.desk import Desk, desk, follow
from tests.node.pool import TestNode

WITHIN_MS = 10_000


@pytest.fixture
def fresh(qtbot: QtBot, qapp: QApplication, lone: TestNode) -> Iterator[Desk]:
    """A window over the lone node that has no chats, and a node that has no key."""
    made = desk(qapp, lone.root)
    _forget(lone)
    follow(qtbot, made.services)
    yield made
    made.services.pool.stop()
    made.services.lock.close()
    _forget(lone)


def _forget(lone: TestNode) -> None:
    shutil.rmtree(lone.root / "window", ignore_errors=True)
    (lone.root / "window").mkdir()
    _key(lone).unlink(missing_ok=True)


def _key(lone: TestNode) -> Path:
    return lone.root / "chat-key"


def turn(qtbot: QtBot, lock: ChatLock, on: bool) -> AppError | None:
    with qtbot.waitSignal(lock.encryption_changed, timeout=WITHIN_MS) as turned:
        lock.set_encryption(on)
    assert turned.args is not None
    error: AppError | None = turned.args[0]
    return error


def again(qapp: QApplication, qtbot: QtBot, lone: TestNode) -> Desk:
    """Another window over the same node."""
    made = desk(qapp, lone.root)
    follow(qtbot, made.services)
    return made


def page_of(qtbot: QtBot, made: Desk) -> ChatPage:
    page = ChatPage(made.services)
    qtbot.addWidget(page)
    page.resize(1000, 700)
    page.show()
    return page


def seal_and_leave(qtbot: QtBot, made: Desk) -> None:
    """Encrypt its chats, and close the window."""
    assert turn(qtbot, made.services.lock, True) is None
    made.services.lock.close()
    made.services.pool.stop()


def locked_out(qtbot: QtBot, qapp: QApplication, lone: TestNode) -> tuple[Desk, ChatPage, AppError]:
    """Another window over the same node, whose chats stay locked, and why they do."""
    other = again(qapp, qtbot, lone)
    page, lock = page_of(qtbot, other), other.services.lock
    qtbot.waitUntil(lambda: lock.problem is not None, timeout=WITHIN_MS)
    assert lock.problem is not None
    return other, page, lock.problem


def texts(page: ChatPage) -> list[str]:
    return [message.text for message in path(page.chat)]


def test_chats_are_there_again_after_a_restart(qtbot: QtBot, qapp: QApplication, lone: TestNode, fresh: Desk) -> None:
    lock, preferences = fresh.services.lock, fresh.services.preferences
    preferences.keep(CLOSED_FOLDERS_KEY, "Secret folder")
    assert not _key(lone).exists()
    page = page_of(qtbot, fresh)
    chat = talked(page.history, "What is a cormorant?", "A bird.", folder="Birds")
    page.open_chat(chat.id)
    assert turn(qtbot, lock, True) is None
    assert (lock.is_on, lock.is_busy, preferences.flag(ENCRYPTED_KEY)) == (True, False, True)
    assert preferences.text(CLOSED_FOLDERS_KEY) == ""
    page.list.view.folded.emit()
    assert preferences.text(CLOSED_FOLDERS_KEY) == ""  # nor are they written now
    page.list.search.setText("cormorant")
    qtbot.waitUntil(lambda: len(page.list.view.rows) == 1)
    page.close_history()
    assert b"cormorant" not in (fresh.services.folder / FILE).read_bytes()
    fresh.services.pool.stop()

    other = again(qapp, qtbot, lone)
    page = page_of(qtbot, other)
    assert other.services.lock.is_on
    qtbot.waitUntil(lambda: not other.services.lock.is_locked, timeout=WITHIN_MS)
    assert texts(page) == ["What is a cormorant?", "A bird."]  # the one that was open
    assert page.list.isVisible()
    assert turn(qtbot, other.services.lock, False) is None
    assert not other.services.preferences.flag(ENCRYPTED_KEY)
    assert _key(lone).exists()  # for copies that were made meanwhile
    page.close_history()
    other.services.pool.stop()
    assert b"cormorant" in (fresh.services.folder / FILE).read_bytes()


def test_what_the_command_line_turned_the_window_follows(
    qtbot: QtBot, qapp: QApplication, lone: TestNode, fresh: Desk
) -> None:
    """This includes texts in its preferences, which the command line does not touch."""
    talked(fresh.services.lock.history, "Keep me")
    fresh.services.preferences.keep(SYSTEM, "Always as a kestrel")
    at = ["--home", str(lone.root)]
    assert main(["chats", "encrypt", *at]) == 1  # in use
    fresh.services.lock.close()
    fresh.services.pool.stop()
    choices = lone.root / "window" / "window.ini"
    assert main(["chats", "encrypt", *at]) == 0

    other = again(qapp, qtbot, lone)
    lock, preferences = other.services.lock, other.services.preferences
    assert lock.history.locked is not None
    qtbot.waitUntil(lambda: lock.history.locked is None, timeout=WITHIN_MS)
    assert (lock.is_on, preferences.flag(ENCRYPTED_KEY)) == (True, True)
    assert preferences.text(SYSTEM) == "Always as a kestrel"
    assert "kestrel" not in choices.read_text("utf-8")
    lock.close()
    other.services.pool.stop()
    assert main(["chats", "decrypt", *at]) == 0

    last = again(qapp, qtbot, lone)
    lock, preferences = last.services.lock, last.services.preferences
    assert lock.history.locked is None
    qtbot.waitUntil(lambda: preferences.text(SYSTEM) == "Always as a kestrel", timeout=WITHIN_MS)
    assert (lock.is_on, preferences.flag(ENCRYPTED_KEY)) == (False, False)
    assert "kestrel" in choices.read_text("utf-8")
    lock.close()
    last.services.pool.stop()


def test_without_the_key_nothing_can_be_typed_or_lost(
    qtbot: QtBot, qapp: QApplication, lone: TestNode, fresh: Desk
) -> None:
    chat = talked(fresh.services.lock.history, "Keep me")
    fresh.services.preferences.keep(LAST_CHAT_KEY, chat.id)
    seal_and_leave(qtbot, fresh)
    file = fresh.services.folder / FILE
    before, key = file.read_bytes(), _key(lone).read_bytes()
    _key(lone).unlink()

    other, page, problem = locked_out(qtbot, qapp, lone)
    lock = other.services.lock
    assert problem.reason.code == "history_key_gone"
    assert f"missing from the file {_key(lone)}." in said(problem)
    shown = [button.text() for button in page.findChildren(QPushButton) if button.isVisible()]
    assert shown == ["Try again", "Start a new history…"]
    assert not page.composer.isVisible()
    assert not page.list.isVisible()
    assert other.services.preferences.text(LAST_CHAT_KEY) == chat.id
    assert turn(qtbot, lock, False) is not None  # it is not turned off, nor a key made
    assert not _key(lone).exists()
    assert file.read_bytes() == before

    _key(lone).write_bytes(key)
    lock.try_again()
    qtbot.waitUntil(lambda: not lock.is_locked, timeout=WITHIN_MS)
    assert texts(page) == ["Keep me"]
    page.close_history()
    other.services.pool.stop()


def test_system_messages_are_encrypted_too(qtbot: QtBot, qapp: QApplication, lone: TestNode, fresh: Desk) -> None:
    services = fresh.services
    ini = services.folder / "window.ini"
    Presets(services.preferences).save_system("Own", "Speak as an osprey")
    services.preferences.keep(SYSTEM, "Always as a kestrel")
    services.preferences.use(PlainCodec())
    assert {b"osprey" in ini.read_bytes(), b"kestrel" in ini.read_bytes()} == {True}
    assert turn(qtbot, services.lock, True) is None
    assert {b"osprey" in ini.read_bytes(), b"kestrel" in ini.read_bytes()} == {False}
    assert Presets(services.preferences).own_systems() == {"Own": "Speak as an osprey"}
    services.lock.close()
    services.pool.stop()

    other = desk(qapp, lone.root)
    preferences, group = other.services.preferences, SettingsOfChats(other.services)
    qtbot.addWidget(group)
    assert preferences.is_locked(SYSTEM)
    preferences.keep(SYSTEM, "not written over what is locked")
    group.refresh()  # asks for the key
    assert not group.system.isEnabled()
    group.reset()
    follow(qtbot, other.services)
    qtbot.waitUntil(group.system.isEnabled, timeout=WITHIN_MS)
    assert group.system.toPlainText() == "Always as a kestrel"
    page = page_of(qtbot, other)
    assert page.chat.system == "Always as a kestrel"  # of a new chat
    assert turn(qtbot, other.services.lock, False) is None
    assert {b"osprey" in ini.read_bytes(), b"kestrel" in ini.read_bytes()} == {True}
    assert preferences.text(SYSTEM) == "Always as a kestrel"
    page.close_history()
    other.services.pool.stop()


def test_a_keyring_that_is_locked_is_asked_again(qtbot: QtBot, qapp: QApplication, lone: TestNode, fresh: Desk) -> None:
    talked(fresh.services.lock.history, "Keep me")
    seal_and_leave(qtbot, fresh)
    aside = _key(lone).with_name("aside")
    _key(lone).rename(aside)
    _key(lone).mkdir()  # a place that cannot be read, as a locked keyring
    try:
        other, page, problem = locked_out(qtbot, qapp, lone)
        lock = other.services.lock
        assert f"the file with their key, {_key(lone)}, cannot be read" in said(problem)
        shown = [button.text() for button in page.findChildren(QPushButton) if button.isVisible()]
        assert shown == ["Try again"]
        error = turn(qtbot, lock, True)
        assert error is not None
    finally:
        _key(lone).rmdir()
        aside.rename(_key(lone))
    lock.try_again()
    qtbot.waitUntil(lambda: not lock.is_locked, timeout=WITHIN_MS)
    assert [heading.title for heading in page.history.headings()] == ["Keep me"]
    page.close_history()
    other.services.pool.stop()


def test_another_key_opens_nothing_and_a_new_history_may_be_begun(
    qtbot: QtBot, qapp: QApplication, lone: TestNode, fresh: Desk
) -> None:
    talked(fresh.services.lock.history, "Keep me")
    fresh.services.preferences.keep(SYSTEM, "Always as a kestrel")
    seal_and_leave(qtbot, fresh)
    _key(lone).unlink()
    elsewhere = desk(qapp, fresh.services.folder.parent)
    elsewhere_folder = fresh.services.folder / "elsewhere"
    elsewhere_folder.mkdir()
    follow(qtbot, elsewhere.services)
    stranger = ChatLock(elsewhere.services.client, elsewhere.services.pool,
                        Preferences(elsewhere_folder), elsewhere_folder, qapp)  # fmt: skip
    assert turn(qtbot, stranger, True) is None  # and with it the node has another key
    stranger.close()
    elsewhere.services.pool.stop()

    before = (fresh.services.folder / FILE).read_bytes()
    other, page, problem = locked_out(qtbot, qapp, lone)
    lock = other.services.lock
    assert problem.reason.code == "history_key_wrong"
    assert f"the key in the file {_key(lone)} does not match them" in said(problem)
    aside = lock.start_new_history()
    assert aside is not None
    assert aside.read_bytes() == before
    assert str(aside) in page.notice.sentence
    other.services.preferences.keep(SYSTEM, "a new one")  # in place of one that nobody can open
    assert other.services.preferences.text(SYSTEM) == "a new one"
    assert page.composer.isVisible()
    assert not other.services.preferences.flag(ENCRYPTED_KEY)
    page.close_history()
    other.services.pool.stop()


def test_while_the_node_is_away_nothing_is_turned(qtbot: QtBot, away: Desk) -> None:
    lock = away.services.lock
    talked(lock.history, "Readable")
    error = turn(qtbot, lock, True)
    assert error is not None
    assert error.reason.code == "node_away"
    assert not lock.is_on
    assert not lock.is_busy


def test_the_draft_of_the_moment_goes_along(qtbot: QtBot, fresh: Desk) -> None:
    page = page_of(qtbot, fresh)
    chat = talked(page.history, "A question")
    page.open_chat(chat.id)
    page.composer.field.setPlainText("half a thought")
    assert turn(qtbot, fresh.services.lock, True) is None
    assert page.composer.text == "half a thought"
    page.close_history()
    assert b"half a thought" not in (fresh.services.folder / FILE).read_bytes()
    opened = fresh.services.lock
    assert opened.history.chat(chat.id) is None  # opened anew: locked until the key was read
    qtbot.waitUntil(lambda: not opened.is_locked, timeout=WITHIN_MS)
    result = opened.history.chat(chat.id)
    assert result is not None
    assert result == replace(result, draft="half a thought")
