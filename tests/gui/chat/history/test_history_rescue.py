"""Tests of rescuing a damaged history: intact chats come back, and the rest is set aside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.core.chat import ChatId, path
from app.core.errors import Damaged
from app.gui.chat.export.import_export import rescue
from app.gui.chat.history.history_cipher import PlainCodec
from app.gui.chat.history.history_file import FILE
from app.gui.chat.list.chat_list import ChatList
from tests.gui.chat.talk import history, talked
from tests.gui.desk import Desk

PAGE = 4096
CHATS = 60


def damaged(folder: Path) -> dict[str, list[str]]:
    """A history of which the middle was overwritten; its texts by title."""
    kept = history(folder)
    said = {}
    for number in range(CHATS):
        chat = talked(kept, f"Question {number}", f"{number} " * 900, title=f"Chat {number}")
        said[chat.title] = [message.text for message in path(chat)]
    kept.close()
    file = folder / FILE
    data = bytearray(file.read_bytes())
    middle = len(data) // PAGE // 2 * PAGE
    data[middle : middle + 6 * PAGE] = b"\xa5" * (6 * PAGE)
    file.write_bytes(data)
    return said


def test_what_is_whole_comes_back(qtbot: QtBot, away: Desk) -> None:
    said = damaged(away.services.folder)
    kept = history(away.services.folder)
    shown = ChatList(away.services, kept)
    qtbot.addWidget(shown)
    for heading in kept.headings():
        kept.chat(heading.id)  # one of them shows the damage
    assert kept.trouble is not None
    qtbot.waitUntil(lambda: bool(kept.headings()))  # those that were open
    next(button for button in shown.notice.findChildren(QPushButton)).click()
    qtbot.waitUntil(lambda: "imported" in shown.notice.sentence, timeout=10_000)
    back = [kept.chat(heading.id) for heading in kept.headings()]
    assert len(back) > CHATS // 2
    assert len({chat.title for chat in back if chat}) == len(back)
    for chat in back:
        assert chat is not None
        assert [message.text for message in path(chat)] == said[chat.title]
    kept.close()


def test_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite3").write_bytes(b"nothing " * 1000)
    with pytest.raises(Damaged):
        rescue(tmp_path / "x.sqlite3", PlainCodec(), lambda _: None)


def test_deleted_chats_stay_deleted(qtbot: QtBot, tmp_path: Path) -> None:
    kept = history(tmp_path)
    item, two = talked(kept, "stays"), talked(kept, "goes")
    kept.delete([two.id])
    kept.flush()
    chats = rescue(tmp_path / FILE, PlainCodec(), lambda _: None)
    assert [replace(chat, id=ChatId("")) for chat in chats] == [replace(item, id=ChatId(""))]
    kept.close()
