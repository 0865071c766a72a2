"""The window's chats on disk, which this module can read and rewrite without the window."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.core.errors import AppError, BadInput, Busy, Refused
from app.gui.chat.history import history_file
from app.gui.chat.history.history_cipher import Cipher
from app.gui.chat.history.history_conversion import Conversion, conversion_connection, convert
from app.machine.paths import Home

FILE = Path("window") / history_file.FILE  # relative to the home
IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
BUSY_MS = 250


@dataclass(frozen=True, slots=True)
class Chats:
    """A summary of the file. If `swept` is set, no readable traces of its former contents are left."""

    file: str
    encrypted: bool
    swept: bool
    chats: int
    messages: int


def find_file(home: Home) -> Path:
    """Return the path of the file that contains the chats. Raises BadInput if there are no chats."""
    file = home.root / FILE
    if not file.is_file():
        raise BadInput("chats_none", path=str(file))
    return file


def read_chats(file: Path) -> Chats:
    """Return a summary of the chats. Works while the window is open. Raises AppError."""
    with _explained_errors(file), contextlib.closing(history_file.connect(file)) as db:
        return _read_chats(db, file)


def check_key(file: Path, cipher: Cipher, place: str) -> None:
    """Raise Refused, naming `place` as the location of the key, unless `cipher` has the key of the encrypted file."""
    with _explained_errors(file), contextlib.closing(history_file.connect(file)) as db:
        if history_file.why_locked(db, file, cipher) is not None:
            raise Refused("history_key_wrong", place=place, path=str(file))


def rewrite(file: Path, conversion: Conversion, cipher: Cipher, progress: Callable[[int, int], None]) -> Chats:
    """Encrypt or decrypt all chats. If this fails, none are changed. Raises Busy while the window is open, and
    AppError."""
    with _explained_errors(file), conversion_connection(file, threading.Event()) as db:
        db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        db.execute("PRAGMA locking_mode = EXCLUSIVE")  # not even an idle window may have it open
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in IN_USE:
                raise Busy("chats_in_use", path=str(file)) from None
            raise
        db.execute("COMMIT")
        convert(conversion, db, file, cipher, progress)
        return _read_chats(db, file)


def _read_chats(db: sqlite3.Connection, file: Path) -> Chats:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > history_file.SEALED:
        raise Refused("history_newer", path=str(file))
    if version == 0:
        raise BadInput("chats_none", path=str(file))
    sealed = version == history_file.SEALED
    (n_chats,) = db.execute("SELECT count(*) FROM chats").fetchone()
    (n_messages,) = db.execute("SELECT count(*) FROM messages").fetchone()
    swept = history_file.is_swept(db) if sealed else True
    return Chats(str(file), sealed, swept, n_chats, n_messages)


@contextlib.contextmanager
def _explained_errors(file: Path) -> Iterator[None]:
    """Convert errors of SQLite to AppErrors that users can understand."""
    try:
        yield
    except AppError:
        raise
    except sqlite3.Error as error:
        if history_file.is_damage(error):
            raise BadInput("history_unreadable", path=str(file)) from error
        raise history_file.database_error(error, file) from error
