"""Chats for tests of the history and the list."""

from __future__ import annotations

from pathlib import Path

from app.core.chat import Chat, Message, Role, add
from app.gui.chat.history.history import History
from app.gui.chat.history.history_file import FILE


def history(folder: Path) -> History:
    """The history in a folder."""
    return History(folder / FILE)


def talked(kept: History, *texts: str, title: str = "", folder: str = "") -> Chat:
    """A chat in which these were said in turn, kept."""
    made = kept.begin(folder)
    for number, text in enumerate(texts):
        role = Role.USER if number % 2 == 0 else Role.ASSISTANT
        made = add(made, Message(kept.new_message_id(), made.leaf, role, text, kept.now()))
    kept.save(made)
    if title:
        kept.rename(made.id, title)
    return kept.chat(made.id) or made
