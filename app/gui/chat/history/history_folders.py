"""Folders in the history's file. A sealed name differs each time, so a folder is found by opening all."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from app.core.chat import ChatId
from app.gui.chat.history.history_cipher import Codec, Kept, storable

NAME_CHARACTERS = 200  # of a title or a folder
FOLDER = "folder"  # the place of a name; chats hold it just as the folder does


def names(db: sqlite3.Connection, codec: Codec) -> list[str]:
    """By name; empty ones too."""
    return sorted(_all(db, codec), key=str.casefold)


def made(db: sqlite3.Connection, name: str, codec: Codec) -> Kept:
    """How the file holds this name; made if it is new."""
    name = storable(name)
    known = _all(db, codec).get(name)
    if known is not None:
        return known
    kept = codec.seal(name, FOLDER)
    db.execute("INSERT INTO folders (name) VALUES (?)", (kept,))
    return kept


def move(db: sqlite3.Connection, chats: Sequence[ChatId], name: str, codec: Codec) -> None:
    """Into a folder; "" for out of any."""
    kept = made(db, name, codec) if name else None
    db.executemany("UPDATE chats SET folder = ? WHERE id = ?", [(kept, one) for one in chats])


def remove(db: sqlite3.Connection, name: str, codec: Codec) -> None:
    """Its chats are in none then."""
    known = _all(db, codec).get(storable(name))
    if known is not None:
        db.execute("DELETE FROM folders WHERE name = ?", (known,))


def _all(db: sqlite3.Connection, codec: Codec) -> dict[str, Kept]:
    rows = db.execute("SELECT name FROM folders").fetchall()
    return {codec.open(name, FOLDER): name for (name,) in rows}


def named(typed: str) -> str:
    """A title or a folder as it is kept: one line of bounded length."""
    return storable(" ".join(typed.split())[:NAME_CHARACTERS])
