"""Histories whose texts stand encrypted in their file, and what of them anybody could read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.core.chat import Chat, Message, Role, add
from app.core.errors import AppError
from app.gui.chat.history.history import History
from app.gui.chat.history.history_conversion import Conversion
from tests.gui.chat.talk import history, talked

KEY, OTHER = bytes(range(32)), bytes(32)
SECRETS = ("cormorant", "Graylag", "system-teal", "draft-heron", "Folder-Ibis", "attached-egret",
           "empty-folder-stork", "Kept-Title", "model-rail", "drafted-crane")  # fmt: skip


def filled(kept: History) -> Chat:
    """Chats whose words are in every place that holds words."""
    talked(kept, "What is a cormorant?", "A bird.", title="Kept-Title", folder="Folder-Ibis")
    kept.make_folder("empty-folder-stork")
    chat = kept.begin()
    details = {"attachments": [{"name": "a.txt", "text": "attached-egret"}]}
    message = Message(kept.new_message_id(), None, Role.USER, "The Graylag", kept.now(), details)
    chat = replace(add(chat, message), system="system-teal", draft="draft-heron", model="model-rail",
                   draft_files=({"name": "b.txt", "text": "drafted-crane"},))  # fmt: skip
    kept.save(chat)
    return chat


def turned(qtbot: QtBot, kept: History, turn: Conversion, key: bytes = KEY) -> AppError | None:
    """Wait until it is; what went wrong."""
    with qtbot.waitSignal(kept.converter.ended, timeout=10_000) as ended:
        assert kept.convert(turn, key)
    assert ended.args is not None
    error: AppError | None = ended.args[0]
    return error


def sealed(qtbot: QtBot, folder: Path, fill: Callable[[History], object] = filled) -> History:
    """A history with chats, encrypted."""
    kept = history(folder)
    fill(kept)
    assert turned(qtbot, kept, Conversion.SEAL) is None
    return kept


def swept(qtbot: QtBot, kept: History) -> None:
    """Wait until what a crash left is gone."""
    qtbot.waitUntil(lambda: not kept.converter.busy, timeout=10_000)


def locked(kept: History) -> AppError | None:
    """Return whether the history is locked now."""
    return kept.locked


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def readable(folder: Path) -> list[str]:
    """Return the words that occur in any file, in either case."""
    low = everything(folder).lower()
    return [word for word in SECRETS if word.lower().encode() in low]


def state(kept: History) -> list[object]:
    return [*(kept.chat(heading.id) for heading in kept.headings()), *kept.headings(), *kept.folders()]
