"""Encryption or decryption of all texts in the history file in a single transaction. Does not depend on Qt."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

from app.core.errors import AppError
from app.gui.chat.history import history_file
from app.gui.chat.history.history_cipher import Cipher, Codec, PlainCodec
from app.gui.chat.history.history_file import TRIGGERS, transaction
from app.gui.chat.history.history_rows import CHAT_TEXTS, FOLDER, MESSAGE_TEXTS, chat_place, message_place

BATCH = 100  # messages converted per query
BUSY_TIMEOUT_MS = 5000  # time allowed for the window's own reads to finish
CHECK_INTERVAL = 10_000  # virtual machine instructions of SQLite between checks for cancellation
ReportProgress = Callable[[int, int], None]  # called with the number of converted rows and their total


class Conversion(StrEnum):
    SEAL = "seal"
    OPEN = "open"
    SWEEP = "sweep"  # already encrypted, but a crash prevented the removal of the old pages


@contextlib.contextmanager
def conversion_connection(file: Path, stop: threading.Event) -> Iterator[sqlite3.Connection]:
    """Open a connection that stores temporary data in memory. Its statements fail once `stop` is set."""
    with contextlib.closing(history_file.connect(file)) as db:
        db.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        db.execute("PRAGMA temp_store = MEMORY")
        db.set_progress_handler(stop.is_set, CHECK_INTERVAL)
        yield db


def convert(conversion: Conversion, db: sqlite3.Connection, file: Path, cipher: Cipher, report: ReportProgress) -> None:
    """Encrypt, decrypt or sweep the file. Can be called from any thread.

    Raises sqlite3.Error, or AppError if the file was encrypted but could not be swept.
    """
    if conversion is Conversion.OPEN:
        with transaction(db):
            _recode(db, cipher, PlainCodec(), report)
            history_file.mark_plain(db)
        history_file.index(db)
        return
    if conversion is Conversion.SEAL:
        with transaction(db):
            _drop_index(db)
            _recode(db, PlainCodec(), cipher, report)
            history_file.mark_sealed(db, cipher, swept=False)
    try:
        _sweep(db)
    except sqlite3.Error as error:
        raise AppError("history_unswept", path=str(file), why=str(error)) from error


def _drop_index(db: sqlite3.Connection) -> None:
    for name in TRIGGERS:
        db.execute(f"DROP TRIGGER IF EXISTS {name}")
    db.execute("DROP TABLE IF EXISTS words")


def _sweep(db: sqlite3.Connection) -> None:
    """Overwrite all pages that may still contain plain text, in the database and in SQLite's accompanying files."""
    db.execute("PRAGMA temp_store = FILE")  # on disk, because the copy may be large and its texts are encrypted by now
    db.execute("VACUUM")
    (busy, *_) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise sqlite3.OperationalError("the file is in use")
    with transaction(db):
        db.execute("UPDATE seal SET swept = 1")


def _recode(db: sqlite3.Connection, old: Codec, new: Codec, report: ReportProgress) -> None:
    """Decode all texts that may be encrypted with the old codec, and encode them with the new one."""
    (n_chats,) = db.execute("SELECT count(*) FROM chats").fetchone()
    (n_messages,) = db.execute("SELECT count(*) FROM messages").fetchone()
    done, of = 0, n_chats + n_messages
    for (name,) in db.execute("SELECT name FROM folders").fetchall():
        other = new.seal(old.open(name, FOLDER), FOLDER)
        # cascades to the folder column of the chats
        db.execute("UPDATE folders SET name = ? WHERE name = ?", (other, name))
    for (chat,) in db.execute("SELECT id FROM chats").fetchall():
        _recode_chat(db, chat, old, new)
        done += 1
        report(done, of)
    last = -1
    while rows := _messages_after(db, last):
        for row in rows:
            _recode_message(db, row, old, new)
        last, done = rows[-1][0], done + len(rows)
        report(done, of)


def _recode_chat(db: sqlite3.Connection, chat: str, old: Codec, new: Codec) -> None:
    columns = ", ".join(CHAT_TEXTS)
    row = db.execute(f"SELECT {columns} FROM chats WHERE id = ?", (chat,)).fetchone()  # noqa: S608
    values = [
        None if kept is None else new.seal(old.open(kept, *place), *place)
        for column, kept in zip(CHAT_TEXTS, row, strict=True)
        for place in (chat_place(column, chat),)
    ]
    settings = ", ".join(f"{column} = ?" for column in CHAT_TEXTS)
    db.execute(f"UPDATE chats SET {settings} WHERE id = ?", (*values, chat))  # noqa: S608


def _messages_after(db: sqlite3.Connection, number: int) -> list[tuple[int, str, str, str, str]]:
    order = "SELECT number, chat, id, text, details FROM messages WHERE number > ? ORDER BY number LIMIT ?"
    return db.execute(order, (number, BATCH)).fetchall()


def _recode_message(db: sqlite3.Connection, row: tuple[int, str, str, str, str], old: Codec, new: Codec) -> None:
    number, chat, message, *texts = row
    values = [
        new.seal(old.open(kept, *place), *place)
        for column, kept in zip(MESSAGE_TEXTS, texts, strict=True)
        for place in (message_place(column, chat, message),)
    ]
    db.execute("UPDATE messages SET text = ?, details = ? WHERE number = ?", (*values, number))
