"""Chats and messages <-> rows of the history's file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from app.core.chat import Chat, ChatId, Heading, Message, MessageId, Role, title_of

HEADING = "id, shown, coalesce(folder, ''), pinned, archived, changed_at"
CHAT = (
    "title, coalesce(folder, ''), pinned, archived, model, system, sampling, context, draft, "
    "leaf, changed_at"
)


def heading(row: tuple[Any, ...]) -> Heading:
    """From the columns HEADING."""
    return Heading(ChatId(row[0]), row[1], row[2], bool(row[3]), bool(row[4]), row[5])


def read(db: sqlite3.Connection, ident: ChatId) -> Chat | None:
    """A chat with its messages."""
    row = db.execute(f"SELECT {CHAT} FROM chats WHERE id = ?", (ident,)).fetchone()  # noqa: S608
    if row is None:
        return None
    messages = {
        MessageId(ident): Message(
            MessageId(ident), parent, Role(role), text, made_at, _unpacked(details)
        )
        for ident, parent, role, text, made_at, details in db.execute(
            "SELECT id, parent, role, text, made_at, details FROM messages"
            " WHERE chat = ? ORDER BY number",
            (ident,),
        )
    }
    title, folder, pinned, archived, model, system, sampling, context, draft, leaf, changed = row
    return Chat(
        ident, title, folder, bool(pinned), bool(archived), model, system, _unpacked(sampling),
        context, draft, messages, leaf if leaf in messages else None, changed,
    )  # fmt: skip


def write(db: sqlite3.Connection, chat: Chat, before: Chat | None, *, whole: bool) -> None:
    """What is different from `before`. whole: nothing of it is under way, so words are indexed."""
    if before is None:
        _insert(db, chat)
    elif _settings(chat) != _settings(before):
        db.execute(
            "UPDATE chats SET model = ?, system = ?, sampling = ?, context = ?, draft = ?,"
            " leaf = ?, changed_at = ?, shown = ? WHERE id = ?",
            (*_settings(chat), storable(title_of(chat)), chat.id),
        )
    known = before.messages if before else {}
    for gone in known.keys() - chat.messages.keys():
        order = "DELETE FROM messages WHERE chat = ? AND id = ?"
        db.execute(order, (chat.id, storable(gone)))
    _write_messages(db, chat, known, whole=whole)
    if whole:
        db.execute("UPDATE messages SET indexed = 1 WHERE chat = ? AND indexed = 0", (chat.id,))


def with_headline(chat: Chat, kept: Chat) -> Chat:
    """`chat` with what only the list changes: its title, its folder, whether it is pinned."""
    return replace(
        chat, title=kept.title, folder=kept.folder, pinned=kept.pinned, archived=kept.archived
    )


def _insert(db: sqlite3.Connection, chat: Chat) -> None:
    if chat.folder:
        db.execute("INSERT OR IGNORE INTO folders (name) VALUES (?)", (storable(chat.folder),))
    db.execute(
        "INSERT INTO chats (model, system, sampling, context, draft, leaf, changed_at,"
        " shown, id, title, folder, pinned, archived) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (*_settings(chat), storable(title_of(chat)), chat.id, storable(chat.title),
         storable(chat.folder) or None,
         chat.pinned, chat.archived),
    )  # fmt: skip


def _write_messages(
    db: sqlite3.Connection, chat: Chat, known: Mapping[MessageId, Message], *, whole: bool
) -> None:
    new: list[tuple[Any, ...]] = []
    for message in chat.messages.values():
        old = known.get(message.id)
        if old is None:
            new.append(
                (chat.id, storable(message.id), _maybe(message.parent), message.role,
                 storable(message.text), message.made_at, _packed(message.details), whole)
            )  # fmt: skip
        elif old is not message and old != message:
            db.execute(
                "UPDATE messages SET text = ?, details = ?, indexed = ? WHERE chat = ? AND id = ?",
                (
                    storable(message.text),
                    _packed(message.details),
                    whole,
                    chat.id,
                    storable(message.id),
                ),
            )
    db.executemany(
        "INSERT INTO messages (chat, id, parent, role, text, made_at, details, indexed)"
        " VALUES (?,?,?,?,?,?,?,?)",
        new,
    )


def _settings(chat: Chat) -> tuple[Any, ...]:
    return (
        _maybe(chat.model), storable(chat.system), _packed(chat.sampling), chat.context,
        storable(chat.draft), _maybe(chat.leaf), chat.changed_at,
    )  # fmt: skip


def storable(text: str) -> str:
    """Without half characters, which no file can hold; a model may emit them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _maybe(text: str | None) -> str | None:
    return None if text is None else storable(text)


def _packed(facts: Mapping[str, Any]) -> str:
    return storable(json.dumps(dict(facts), ensure_ascii=False, separators=(",", ":")))


def _unpacked(text: str) -> dict[str, Any]:
    found = json.loads(text)
    return found if isinstance(found, dict) else {}


def headings(
    db: sqlite3.Connection, where: str = "1", values: Iterable[object] = ()
) -> list[Heading]:
    """Lines of the list: the pinned first, then the one last spoken in. `where` is ours."""
    rows = db.execute(
        f"SELECT {HEADING} FROM chats WHERE deleted_at IS NULL AND {where}"  # noqa: S608
        " ORDER BY pinned DESC, changed_at DESC, id",
        tuple(values),
    )
    return [heading(row) for row in rows]
