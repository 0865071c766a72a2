"""The file of the history: opened or made, brought up to date, kept aside if it is damaged."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.core.errors import AppError, Damaged, DoesNotFit, Refused

VERSION = 1  # `user_version` of the file
BUSY_S = 0.25  # another program may read along; the window does not wait long for it
JOURNAL_BYTES = 4 << 20  # what the write-ahead file shrinks to

TABLES = """
CREATE TABLE folders (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE chats (
  id TEXT PRIMARY KEY, title TEXT NOT NULL, shown TEXT NOT NULL,
  folder TEXT REFERENCES folders (name) ON UPDATE CASCADE ON DELETE SET NULL,
  pinned INTEGER NOT NULL, archived INTEGER NOT NULL,
  model TEXT, system TEXT NOT NULL, sampling TEXT NOT NULL, context INTEGER, draft TEXT NOT NULL,
  leaf TEXT, changed_at REAL NOT NULL, deleted_at REAL
);
CREATE INDEX chats_by_time ON chats (pinned DESC, changed_at DESC);
CREATE INDEX chats_by_folder ON chats (folder);
CREATE TABLE messages (
  number INTEGER PRIMARY KEY, chat TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
  id TEXT NOT NULL, parent TEXT, role TEXT NOT NULL, text TEXT NOT NULL, made_at REAL NOT NULL,
  details TEXT NOT NULL, indexed INTEGER NOT NULL,
  UNIQUE (chat, id),
  FOREIGN KEY (chat, parent) REFERENCES messages (chat, id)
    ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX messages_by_parent ON messages (chat, parent);
CREATE INDEX messages_unindexed ON messages (chat) WHERE indexed = 0;
"""

# The index of words. An answer under way is not in it (`indexed` is 0): it changes every second.
WORDS = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
  text, content='messages', content_rowid='number', tokenize='unicode61 remove_diacritics 2',
  prefix='2 3'
);
UPDATE messages SET indexed = 1;
INSERT INTO words (words) VALUES ('rebuild');
CREATE TRIGGER words_added AFTER INSERT ON messages WHEN new.indexed BEGIN
  INSERT INTO words (rowid, text) VALUES (new.number, new.text);
END;
CREATE TRIGGER words_removed AFTER DELETE ON messages WHEN old.indexed BEGIN
  INSERT INTO words (words, rowid, text) VALUES ('delete', old.number, old.text);
END;
CREATE TRIGGER words_left AFTER UPDATE OF text, indexed ON messages WHEN old.indexed BEGIN
  INSERT INTO words (words, rowid, text) VALUES ('delete', old.number, old.text);
END;
CREATE TRIGGER words_came AFTER UPDATE OF text, indexed ON messages WHEN new.indexed BEGIN
  INSERT INTO words (rowid, text) VALUES (new.number, new.text);
END;
"""
# Begun, and then nothing was said and nothing set.
EMPTY = (
    "title = '' AND system = '' AND draft = '' AND sampling = '{}'"
    " AND NOT EXISTS (SELECT 1 FROM messages WHERE chat = chats.id)"
)
TRIGGERS = ("words_added", "words_removed", "words_left", "words_came")


@dataclass(frozen=True, slots=True)
class Opened:
    """`trouble` is what a person must hear about it. `indexed`: words can be looked up."""

    db: sqlite3.Connection
    path: Path | None  # None: only in memory
    indexed: bool
    trouble: AppError | None


class _Newer(Exception):
    """The file was written by a newer version."""


def open_history(path: Path) -> Opened:
    """The history in `path`. A damaged file is kept aside; one of a newer version stays untouched."""
    try:
        return Opened(*_open(path), None)
    except _Newer:
        own = path.with_name(f"{path.stem}-v{VERSION}{path.suffix}")
        return _opened_instead(own, Refused("history_newer", path=str(path)))
    except sqlite3.DatabaseError as error:
        odd = _code(error) == sqlite3.SQLITE_ERROR  # a table or a column of ours is not there
        if not (odd or is_damage(error)):
            return _in_memory(why_not(error, path))
    except OSError as error:
        return _in_memory(AppError("history_unwritten", path=str(path), why=_words(error)))
    return keep_aside(path)


def keep_aside(path: Path) -> Opened:
    """The damaged file under another name, and a new one in its place."""
    try:
        aside = _aside(path)
    except OSError as error:
        return _in_memory(AppError("history_unwritten", path=str(path), why=_words(error)))
    return _opened_instead(path, Damaged("history_set_aside", path=str(aside)))


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is at fault, not the disk or the permissions."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_index_damage(error: sqlite3.Error) -> bool:
    """Whether only the index of words is at fault, which can be made again."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_VTAB


def mend(db: sqlite3.Connection) -> bool:
    """Make the index of words again from the texts."""
    try:
        db.execute("INSERT INTO words (words) VALUES ('rebuild')")
    except sqlite3.DatabaseError:
        return False
    return True


def why_not(error: sqlite3.Error, path: Path | None) -> AppError:
    """The error as a sentence for whoever looks at the window."""
    if _code(error) == sqlite3.SQLITE_FULL:
        return DoesNotFit("history_full", path=str(path))
    return AppError("history_unwritten", path=str(path), why=str(error))


def _code(error: sqlite3.Error) -> int:
    """SQLite's own number of the error; 0 if the error is Python's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All of it is written, or nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk may have ended it already
            db.execute("ROLLBACK")
        raise


def connect(path: Path) -> sqlite3.Connection:
    """A connection of ours; also the exporter's, in its own thread."""
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    db.executescript("PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;")
    return db


def _open(path: Path) -> tuple[sqlite3.Connection, Path, bool]:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite's other files copy its mode
    path.chmod(0o600)
    db = connect(path)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")  # outlives a kill; no wait for the disk
        db.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES}")
        _bring_up(db)
        indexed = _index(db)
        _look_around(db)
    except BaseException:
        db.close()
        raise
    return db, path, indexed


def _bring_up(db: sqlite3.Connection) -> None:
    """Make the tables of this version, from whatever version is there."""
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    if found > VERSION:
        raise _Newer
    if found < VERSION:
        db.executescript(f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")


def _index(db: sqlite3.Connection) -> bool:
    """The index of words, if this SQLite can have one."""
    known = {str(name) for (name,) in db.execute("SELECT name FROM sqlite_master")}
    if not can_index(db):
        for name in known.intersection(TRIGGERS):
            db.execute(f"DROP TRIGGER {name}")
        return False
    if not known.issuperset(TRIGGERS):
        for name in known.intersection(TRIGGERS):
            db.execute(f"DROP TRIGGER {name}")
        db.executescript(f"BEGIN IMMEDIATE; {WORDS} COMMIT;")
    db.execute("UPDATE messages SET indexed = 1 WHERE indexed = 0")  # a crash left them
    return True


def can_index(db: sqlite3.Connection) -> bool:
    """Whether this SQLite was built with FTS5."""
    return bool(db.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')").fetchone()[0])


def _look_around(db: sqlite3.Connection) -> None:
    """Touch what the list needs, so that a damaged file shows itself now."""
    db.execute("SELECT id, shown, folder, draft, leaf, deleted_at FROM chats").fetchall()
    db.execute("SELECT count(*) FROM messages").fetchone()
    db.execute(f"DELETE FROM chats WHERE {EMPTY}")  # noqa: S608  ours


def _opened_instead(path: Path, trouble: AppError) -> Opened:
    try:
        return Opened(*_open(path), trouble)
    except (sqlite3.Error, OSError, _Newer) as error:
        return _in_memory(AppError("history_unwritten", path=str(path), why=_words(error)))


def _in_memory(trouble: AppError) -> Opened:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("PRAGMA foreign_keys = ON")
    _bring_up(db)
    return Opened(db, None, _index(db), trouble)


def _aside(path: Path) -> Path:
    """Move the damaged file, and what SQLite keeps beside it, to a name that is free."""
    number = 1
    while (aside := path.with_name(f"{path.stem}-damaged-{number}{path.suffix}")).exists():
        number += 1
    path.rename(aside)
    for tail in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + tail).rename(aside.with_name(aside.name + tail))
    return aside


def _words(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
