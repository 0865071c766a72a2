"""Functions that open, create and migrate the history file, and rename it if it is damaged."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.core.errors import AppError, Damaged, DoesNotFit, Fact, Reason, Refused
from app.core.reasons import os_cause
from app.gui.chat.history.history_cipher import Cipher, Codec, PlainCodec, damage_error

FILE = "history.sqlite3"  # in the window's data folder
VERSION, SEALED = 1, 2  # `user_version` of an unencrypted and of an encrypted file
BUSY_TIMEOUT_S = 0.25  # maximum wait while another program has the file locked
VERSION_OFFSET = 60  # offset of `user_version` in the file header (sqlite.org/fileformat2.html, section 1.3)
JOURNAL_BYTES = 4 << 20  # size to which the write-ahead log is truncated

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

# The full-text index. It excludes answers in progress (`indexed` is 0), which change every second.
INDEX = """
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
# Condition for a chat that has neither messages nor settings.
IS_EMPTY = (
    "title = '' AND system = '' AND draft = '' AND sampling = '{}'"
    " AND NOT EXISTS (SELECT 1 FROM messages WHERE chat = chats.id)"
)
TRIGGERS = ("words_added", "words_removed", "words_left", "words_came")
# Exists only in encrypted files. `mark` can be decrypted only with the file's key. `swept` means that no page contains
# plain text anymore.
SEAL = "CREATE TABLE seal (mark BLOB NOT NULL, swept INTEGER NOT NULL);"
MARK = ("Poolhouse", "mark")  # the text of the mark and its place


@dataclass(frozen=True, slots=True)
class OpenedHistory:
    """An open history file.

    trouble: an error that the user should see. locked: the reason why the encrypted texts cannot be read; `db` is
    then an empty in-memory database. indexed: whether there is a full-text index.
    """

    db: sqlite3.Connection
    path: Path | None  # None if the history exists only in memory
    indexed: bool
    codec: Codec
    trouble: AppError | None = None
    locked: AppError | None = None
    locked_path: Path | None = None


class _Newer(Exception):
    """An error raised if the file was written by a newer version of the app."""


def open_history(path: Path, cipher: Cipher | None = None, *, seal_new: bool = False) -> OpenedHistory:
    """Open the history at `path`. A damaged file is renamed, and a file from a newer version is not modified.

    Without the right `cipher`, an encrypted file is locked. seal_new: whether to encrypt a new file.
    """
    try:
        return _open(path, cipher, seal_new)
    except _Newer:
        own = path.with_name(f"{path.stem}-v{VERSION}{path.suffix}")
        trouble = Refused("history_newer", path=str(path))
        return _open_instead(own, trouble, cipher, seal_new)
    except sqlite3.DatabaseError as error:
        odd = _code(error) == sqlite3.SQLITE_ERROR  # a table or column is missing
        if not (odd or is_damage(error)):
            return _in_memory(database_error(error, path))
    except OSError as error:
        return _in_memory(AppError("history_unwritten", path=str(path), why=_words(error)))
    return replace_damaged_file(path, cipher, seal_new=seal_new)


def replace_damaged_file(path: Path, cipher: Cipher | None = None, *, seal_new: bool = False) -> OpenedHistory:
    """Rename a damaged file and open a new one in its place."""
    try:
        aside = move_aside(path, "damaged")
    except OSError as error:
        return _in_memory(AppError("history_unwritten", path=str(path), why=_words(error)))
    return _open_instead(path, Damaged("history_set_aside", path=str(aside)), cipher, seal_new)


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error is caused by a damaged file, rather than by the disk or missing permissions."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_index_damage(error: sqlite3.Error) -> bool:
    """Return whether the damage is limited to the full-text index, which can be rebuilt."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_VTAB


def rebuild_index(db: sqlite3.Connection) -> bool:
    """Rebuild the full-text index from the messages. Return whether that succeeded."""
    try:
        db.execute("INSERT INTO words (words) VALUES ('rebuild')")
    except sqlite3.DatabaseError:
        return False
    return True


def database_error(error: sqlite3.Error, path: Path | None) -> AppError:
    """Convert a database error to one that can be shown to the user."""
    if _code(error) == sqlite3.SQLITE_FULL:
        return DoesNotFit("history_full", path=str(path))
    return AppError("history_unwritten", path=str(path), why=str(error))


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary error code, or 0 if the error was raised by Python's module."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run the body in a transaction, which is rolled back if the body raises."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite itself rolls back on some errors, such as a full disk
            db.execute("ROLLBACK")
        raise


def is_sealed(path: Path) -> bool:
    """Return whether the file header says that the file is encrypted. Returns False if it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(VERSION_OFFSET + 4)
    except OSError:
        return False
    return int.from_bytes(head[VERSION_OFFSET:], "big") == SEALED


def connect(path: Path) -> sqlite3.Connection:
    """Open a read-write connection. Each thread must open its own."""
    db = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, factory=_Connection)
    db.text_factory = _text
    db.executescript("PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;")
    return db


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a read-only connection."""
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, factory=_Connection)
    db.text_factory = _text
    return db


class _Connection(sqlite3.Connection):
    """A connection that reports undecodable bytes as damage, even those in SQLite's error messages."""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        try:
            return super().execute(*arguments)
        except UnicodeDecodeError:
            raise damage_error() from None

    def executescript(self, script: str) -> sqlite3.Cursor:
        try:
            return super().executescript(script)
        except UnicodeDecodeError:
            raise damage_error() from None


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise damage_error() from None


def _open(path: Path, cipher: Cipher | None, seal_new: bool) -> OpenedHistory:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite gives its other files the same mode
    path.chmod(0o600)
    db = connect(path)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        # safe if the process is killed, without waiting for the disk on every write
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES}")
        sealed = _is_sealed(db, seal_new)
        if sealed and (locked := why_locked(db, path, cipher)) is not None:
            db.close()
            return replace(_in_memory(None), locked=locked, locked_path=path)
        _create_tables(db, cipher if sealed else None)
        indexed = not sealed and index(db)
        _probe(db)
    except BaseException:
        db.close()
        raise
    return OpenedHistory(db, path, indexed, cipher if sealed and cipher else PlainCodec())


def _is_sealed(db: sqlite3.Connection, seal_new: bool) -> bool:
    """Return whether the file is encrypted, or will be once it is created. Raises _Newer."""
    version = _version(db)
    if version > SEALED:
        raise _Newer
    tables = {str(name) for (name,) in db.execute("SELECT name FROM sqlite_master")}
    there = SEALED if "seal" in tables else VERSION if "chats" in tables else version
    if version < there:  # the version is damaged; an encrypted file must never be opened as a plain one
        db.execute(f"PRAGMA user_version = {there}")
        version = there
    return version == SEALED or (seal_new and version < VERSION)


def why_locked(db: sqlite3.Connection, path: Path, cipher: Cipher | None) -> AppError | None:
    """Return the reason why the file is locked, or None if it is new or the cipher is correct."""
    if cipher is None:
        return Refused("history_locked")
    if _version(db) == SEALED:
        (mark,) = db.execute("SELECT mark FROM seal").fetchone() or (b"",)
        try:
            cipher.open(mark, MARK[1])
        except sqlite3.DatabaseError:
            return Refused("history_key_wrong", place=Reason("its_place"), path=str(path))
    return None


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _create_tables(db: sqlite3.Connection, cipher: Cipher | None = None) -> None:
    """Create the tables of the current schema version in a new file."""
    if _version(db) >= VERSION:
        return
    db.executescript(f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION};")
    if cipher is not None:
        mark_sealed(db, cipher, swept=True)
    db.execute("COMMIT")


def mark_sealed(db: sqlite3.Connection, cipher: Cipher, *, swept: bool) -> None:
    """Mark the file as encrypted. Must run in a transaction."""
    db.execute(SEAL)
    db.execute("INSERT INTO seal (mark, swept) VALUES (?, ?)", (cipher.seal(*MARK), swept))
    db.execute(f"PRAGMA user_version = {SEALED}")


def mark_plain(db: sqlite3.Connection) -> None:
    """Mark the file as unencrypted. Must run in a transaction."""
    db.execute("DROP TABLE seal")
    db.execute(f"PRAGMA user_version = {VERSION}")


def is_swept(db: sqlite3.Connection) -> bool:
    """Return whether all plain text from before the encryption has been erased from the file."""
    return bool((db.execute("SELECT swept FROM seal").fetchone() or (0,))[0])


def index(db: sqlite3.Connection) -> bool:
    """Create the full-text index if it is missing. Return whether this build of SQLite supports it."""
    known = {str(name) for (name,) in db.execute("SELECT name FROM sqlite_master")}
    if not can_index(db):
        for name in known.intersection(TRIGGERS):
            db.execute(f"DROP TRIGGER {name}")
        return False
    if not known.issuperset(TRIGGERS):
        for name in known.intersection(TRIGGERS):
            db.execute(f"DROP TRIGGER {name}")
        db.executescript(f"BEGIN IMMEDIATE; {INDEX} COMMIT;")
    db.execute("UPDATE messages SET indexed = 1 WHERE indexed = 0")  # left unindexed by a crash
    return True


def can_index(db: sqlite3.Connection) -> bool:
    """Return whether this build of SQLite includes FTS5."""
    return bool(db.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')").fetchone()[0])


def _probe(db: sqlite3.Connection) -> None:
    """Read all columns that the list of chats needs, to detect damage early. Also delete empty chats."""
    db.execute("SELECT id, shown, folder, draft, leaf, deleted_at FROM chats").fetchall()
    db.execute("SELECT count(*) FROM messages").fetchone()
    db.execute(f"DELETE FROM chats WHERE {IS_EMPTY}")  # noqa: S608  ours


def _open_instead(path: Path, trouble: AppError, cipher: Cipher | None, seal_new: bool) -> OpenedHistory:
    try:
        return replace(_open(path, cipher, seal_new), trouble=trouble)
    except (sqlite3.Error, OSError, _Newer) as error:
        return _in_memory(AppError("history_unwritten", path=str(path), why=_words(error)))


def _in_memory(trouble: AppError | None) -> OpenedHistory:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("PRAGMA foreign_keys = ON")
    _create_tables(db)
    return OpenedHistory(db, None, index(db), PlainCodec(), trouble)


def move_aside(path: Path, why: str) -> Path:
    """Rename the file and SQLite's accompanying files to an unused name. Raises OSError."""
    number = 1
    while (aside := path.with_name(f"{path.stem}-{why}-{number}{path.suffix}")).exists():
        number += 1
    path.rename(aside)
    for tail in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + tail).rename(aside.with_name(aside.name + tail))
    return aside


def _words(error: Exception) -> Fact:
    return os_cause(error) if isinstance(error, OSError) else str(error)
