"""What can still be read of a damaged history that was kept aside."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from app.core.chat import Chat, ChatId
from app.core.errors import Damaged
from app.gui.chat.export.chat_json import checked
from app.gui.chat.history import history_rows
from app.gui.chat.history.history_cipher import Codec
from app.gui.chat.history.history_file import connect_to_read


def rescue(aside: Path, codec: Codec, told: Callable[[int], None]) -> list[Chat]:
    """The chats that are whole in it, in any thread; the file itself stays as it is.

    `told` hears how many there are. Raises Damaged if there are none.
    """
    found: list[Chat] = []
    with contextlib.closing(connect_to_read(aside)) as db:
        for ident in _ids(db):
            chat = _read(db, ident, codec)
            if chat is not None:
                found.append(chat)
                told(len(found))
    if not found:
        raise Damaged("history_unreadable", path=str(aside))
    return found


def _ids(db: sqlite3.Connection) -> list[ChatId]:
    """As many as can be listed, the deleted ones left out."""
    found: list[ChatId] = []
    with contextlib.suppress(sqlite3.DatabaseError):
        for (ident,) in db.execute("SELECT id FROM chats NOT INDEXED WHERE deleted_at IS NULL"):
            found.append(ChatId(str(ident)))
    return found


def _read(db: sqlite3.Connection, ident: ChatId, codec: Codec) -> Chat | None:
    """Whole and in its shape, or None."""
    try:
        chat = history_rows.read(db, ident, codec)
        whole = checked(chat) if chat is not None else None
        return replace(whole, id=ident) if whole is not None else None
    except (sqlite3.DatabaseError, ValueError, TypeError):
        return None
