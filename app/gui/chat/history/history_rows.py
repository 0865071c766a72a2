"""Conversion of chats and messages to and from rows of the history file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.core.chat import Chat, ChatId, Details, Heading, Message, MessageId, Role, ToolChoice, title_of
from app.decoding import convert, decode
from app.gui.chat.history.history_cipher import Codec, StoredText, damage_error, storable

NAME_CHARACTERS = 200  # maximum length of titles and folder names
FOLDER = "folder"  # the place of folder names, the same in both tables so that a name has one stored form


def folder_names(db: sqlite3.Connection, codec: Codec) -> list[str]:
    """Return the names of all folders in alphabetical order, including empty folders."""
    return sorted(_all(db, codec), key=str.casefold)


def ensure_folder(db: sqlite3.Connection, name: str, codec: Codec) -> StoredText:
    """Create the folder if necessary, and return its name as stored."""
    name = storable(name)
    known = _all(db, codec).get(name)
    if known is not None:
        return known
    kept = codec.seal(name, FOLDER)
    db.execute("INSERT INTO folders (name) VALUES (?)", (kept,))
    return kept


def move_to_folder(db: sqlite3.Connection, chats: Sequence[ChatId], name: str, codec: Codec) -> None:
    """Move chats into a folder, or out of all folders if the name is empty."""
    kept = ensure_folder(db, name, codec) if name else None
    db.executemany("UPDATE chats SET folder = ? WHERE id = ?", [(kept, chat) for chat in chats])


def remove_folder(db: sqlite3.Connection, name: str, codec: Codec) -> None:
    """Delete a folder and move its chats out of it."""
    known = _all(db, codec).get(storable(name))
    if known is not None:
        db.execute("DELETE FROM folders WHERE name = ?", (known,))


def _all(db: sqlite3.Connection, codec: Codec) -> dict[str, StoredText]:
    rows = db.execute("SELECT name FROM folders").fetchall()
    return {codec.open(name, FOLDER): name for (name,) in rows}


def normalized_name(typed: str) -> str:
    """Return a title or folder name as a single line of limited length."""
    return storable(" ".join(typed.split())[:NAME_CHARACTERS])


HEADING = "id, shown, coalesce(folder, ''), pinned, archived, changed_at"
CHAT = "title, coalesce(folder, ''), pinned, archived, model, system, sampling, context, draft, leaf, changed_at"
CHAT_TEXTS = ("title", "shown", "model", "system", "sampling", "draft")  # columns that may be encrypted
MESSAGE_TEXTS = ("text", "details")
CHOICE_OF_TOOLS = "tools"  # beside the sampling values
WITH_FILES = "\x1e"  # marks a draft with files, stored as JSON; one without files is stored as is


def chat_place(column: str, chat: str) -> tuple[str, ...]:
    """Return the place of an encrypted text in this column of a chat, as used by codecs."""
    return "chat", chat, column


def message_place(column: str, chat: str, message: str) -> tuple[str, ...]:
    """Return the place of an encrypted text in this column of a message, as used by codecs."""
    return "message", chat, message, column


def heading(row: tuple[Any, ...], codec: Codec) -> Heading:
    """Convert a row with the columns of HEADING to a list entry."""
    ident, shown, folder, pinned, archived, changed_at, *_ = row
    return Heading(
        ChatId(ident),
        codec.open(shown, *chat_place("shown", ident)),
        codec.open(folder, FOLDER),
        bool(pinned),
        bool(archived),
        changed_at,
    )


def read(db: sqlite3.Connection, ident: ChatId, codec: Codec) -> Chat | None:
    """Return a chat with all its messages, or None if there is no such chat."""
    row = db.execute(f"SELECT {CHAT} FROM chats WHERE id = ?", (ident,)).fetchone()  # noqa: S608
    if row is None:
        return None
    title, folder, pinned, archived, model, system, sampling, context, draft, leaf, changed = row
    messages = _messages(db, ident, codec)

    def text(column: str, kept: StoredText) -> str:
        return codec.open(kept, *chat_place(column, ident))

    typed, files = _of_draft(text("draft", draft))
    values, tools = _of_sampling(text("sampling", sampling))
    return Chat(
        ident, text("title", title), codec.open(folder, FOLDER), bool(pinned), bool(archived),
        None if model is None else text("model", model), text("system", system),
        values, context, typed, messages,
        leaf if leaf in messages else None, changed, files, tools,
    )  # fmt: skip


def _role(kept: str) -> Role:
    try:
        return Role(kept)
    except ValueError:
        raise damage_error() from None


def _messages(db: sqlite3.Connection, chat: ChatId, codec: Codec) -> dict[MessageId, Message]:
    rows = db.execute(
        "SELECT id, parent, role, text, made_at, details FROM messages WHERE chat = ? ORDER BY number", (chat,)
    )
    return {
        MessageId(ident): Message(
            MessageId(ident),
            parent,
            _role(role),
            codec.open(text, *message_place("text", chat, ident)),
            made_at,
            decode_json(codec.open(details, *message_place("details", chat, ident))),
        )
        for ident, parent, role, text, made_at, details in rows
    }


def write(db: sqlite3.Connection, chat: Chat, before: Chat | None, codec: Codec, *, whole: bool) -> None:
    """Write the changes of a chat since its earlier state `before`.

    whole: whether the chat has no answer in progress, so that its messages can be indexed.
    """
    if before is None:
        _insert(db, chat, codec)
    elif _settings(chat) != _settings(before):
        db.execute(
            "UPDATE chats SET model = ?, system = ?, sampling = ?, context = ?, draft = ?,"
            " leaf = ?, changed_at = ?, shown = ? WHERE id = ?",
            (*_sealed_settings(chat, codec), chat.id),
        )
    known = before.messages if before else {}
    for gone in known.keys() - chat.messages.keys():
        order = "DELETE FROM messages WHERE chat = ? AND id = ?"
        db.execute(order, (chat.id, storable(gone)))
    _write_messages(db, chat, known, codec, whole=whole)
    if whole:
        db.execute("UPDATE messages SET indexed = 1 WHERE chat = ? AND indexed = 0", (chat.id,))


def rename(db: sqlite3.Connection, chat: Chat, title: str, codec: Codec) -> None:
    """Rename a chat. If the title is empty, the chat is named after its first question."""
    shown = title_of(replace(chat, title=title))
    db.execute(
        "UPDATE chats SET title = ?, shown = ? WHERE id = ?",
        (_sealed(codec, "title", title, chat.id), _sealed(codec, "shown", shown, chat.id), chat.id),
    )


def with_headline(chat: Chat, kept: Chat) -> Chat:
    """Return `chat` with the title, folder and flags of `kept`, because only the list may change these fields."""
    return replace(chat, title=kept.title, folder=kept.folder, pinned=kept.pinned, archived=kept.archived)


def _insert(db: sqlite3.Connection, chat: Chat, codec: Codec) -> None:
    folder = ensure_folder(db, chat.folder, codec) if chat.folder else None
    db.execute(
        "INSERT INTO chats (model, system, sampling, context, draft, leaf, changed_at,"
        " shown, id, title, folder, pinned, archived) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            *_sealed_settings(chat, codec),
            chat.id,
            _sealed(codec, "title", chat.title, chat.id),
            folder,
            chat.pinned,
            chat.archived,
        ),
    )


def _write_messages(
    db: sqlite3.Connection, chat: Chat, known: Mapping[MessageId, Message], codec: Codec, *, whole: bool
) -> None:
    new: list[tuple[Any, ...]] = []
    for message in chat.messages.values():
        old = known.get(message.id)
        ident = storable(message.id)
        if old is None:
            new.append(
                (
                    chat.id,
                    ident,
                    _maybe(message.parent),
                    message.role,
                    *_sealed_message(message, chat.id, codec),
                    message.made_at,
                    whole,
                )
            )
        elif old is not message and old != message:
            db.execute(
                "UPDATE messages SET text = ?, details = ?, indexed = ? WHERE chat = ? AND id = ?",
                (*_sealed_message(message, chat.id, codec), whole, chat.id, ident),
            )
    db.executemany(
        "INSERT INTO messages (chat, id, parent, role, text, details, made_at, indexed) VALUES (?,?,?,?,?,?,?,?)", new
    )


def _settings(chat: Chat) -> tuple[Any, ...]:
    return (
        _maybe(chat.model),
        storable(chat.system),
        _sampling(chat),
        chat.context,
        storable(chat.draft),
        _maybe(chat.leaf),
        chat.changed_at,
        chat.draft_files,
    )


def _sealed_settings(chat: Chat, codec: Codec) -> tuple[Any, ...]:
    """Return the encoded settings of a chat, including its title in the list."""
    model = None if chat.model is None else _sealed(codec, "model", chat.model, chat.id)
    return (
        model,
        _sealed(codec, "system", chat.system, chat.id),
        _sealed(codec, "sampling", _sampling(chat), chat.id),
        chat.context,
        _sealed(codec, "draft", _draft(chat), chat.id),
        _maybe(chat.leaf),
        chat.changed_at,
        _sealed(codec, "shown", title_of(chat), chat.id),
    )


def _draft(chat: Chat) -> str:
    """Encode a draft and its attached files as a single text."""
    if not chat.draft_files and not chat.draft.startswith(WITH_FILES):
        return chat.draft
    return WITH_FILES + json.dumps([chat.draft, chat.draft_files], ensure_ascii=False)


def _of_draft(kept: str) -> tuple[str, tuple[Details, ...]]:
    if not kept.startswith(WITH_FILES):
        return kept, ()
    try:
        return decode(kept.removeprefix(WITH_FILES), tuple[str, tuple[dict[str, Any], ...]])
    except ValueError:
        raise damage_error() from None


def _sampling(chat: Chat) -> str:
    """Encode the sampling values of a chat, and its choice of tools if there is one."""
    if chat.tools == ToolChoice():
        return _encode_json(chat.sampling)
    tools = {"servers": chat.tools.servers, "allowed": chat.tools.allowed}
    return _encode_json({**chat.sampling, CHOICE_OF_TOOLS: tools})


def _of_sampling(kept: str) -> tuple[dict[str, Any], ToolChoice]:
    values = decode_json(kept)
    tools = values.pop(CHOICE_OF_TOOLS, None)
    if tools is None:
        return values, ToolChoice()
    try:
        return values, convert(tools, ToolChoice)
    except ValueError:
        raise damage_error() from None


def _sealed(codec: Codec, column: str, text: str, chat: ChatId) -> StoredText:
    return codec.seal(storable(text), *chat_place(column, chat))


def _sealed_message(message: Message, chat: ChatId, codec: Codec) -> tuple[StoredText, StoredText]:
    """Return the encoded text and details of a message."""
    ident = storable(message.id)
    return (
        codec.seal(storable(message.text), *message_place("text", chat, ident)),
        codec.seal(_encode_json(message.details), *message_place("details", chat, ident)),
    )


def _maybe(text: str | None) -> str | None:
    return None if text is None else storable(text)


def _encode_json(facts: Mapping[str, Any]) -> str:
    return storable(json.dumps(dict(facts), ensure_ascii=False, separators=(",", ":")))


def decode_json(text: str) -> dict[str, Any]:
    """Decode the JSON in a column. Raises the error for a damaged file if it is invalid."""
    try:
        return decode(text, dict[str, Any])
    except ValueError:
        raise damage_error() from None


def headings(db: sqlite3.Connection, codec: Codec, where: str = "1", values: Iterable[object] = ()) -> list[Heading]:
    """Return the list entries: pinned ones first, then the most recently active. `where` must be trusted SQL."""
    rows = db.execute(
        f"SELECT {HEADING} FROM chats WHERE deleted_at IS NULL AND {where}"  # noqa: S608
        " ORDER BY pinned DESC, changed_at DESC, id",
        tuple(values),
    )
    return [heading(row, codec) for row in rows]
