"""The history of chats. Changes are written to a single file and survive a crash."""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.chat import Chat, ChatId, Heading, MessageId, Sampling, clone
from app.core.errors import AppError
from app.gui.chat.history import history_file, history_rows, history_search
from app.gui.chat.history.history_cipher import Cipher, Codec
from app.gui.chat.history.history_conversion import Conversion
from app.gui.chat.history.history_rows import normalized_name
from app.gui.chat.history.history_search import Hit
from app.gui.chat.history.history_store import Converter, HistoryStore, Purge

SAVE_INTERVAL_MS = 1000  # minimum time between writes of an answer in progress
RETRY_MS = 5000  # delay before a failed write is retried
MAX_FAILURES = 3  # after this many failures in one pass, the file counts as unwritable
CACHED_CHATS = 8  # number of chats whose stored state is cached, to detect changes
NewChatDefaults = Callable[[], tuple[str, Sampling]]


class History(QObject):
    """The store of all chats. A chat is immutable: to change it, pass a modified copy to `save`.

    Use `save_soon` while an answer is in progress and `save` when it ends. The title, the folder and the pinned and
    archived flags are changed only by their own methods; `save` and `save_soon` ignore them.
    """

    changed = Signal(str)  # the ID of a new or changed chat; "" if several chats or the folders changed
    removed = Signal(str)  # the ID of a deleted chat, which `restore` can still bring back
    troubled = Signal(object)  # an AppError to show, such as a full disk or a damaged file
    recovered = Signal()  # all failed writes have succeeded
    unlocked = Signal()  # the chats have become readable, or the file was replaced

    def __init__(self, path: Path, parent: QObject | None = None, *, sealed: bool = False) -> None:
        """Open or create the file. If it is unusable, `trouble` is set instead of raising an exception.

        sealed: whether to encrypt a new file. An existing file records whether it is encrypted.
        """
        super().__init__(parent)
        self._waiting: dict[ChatId, Chat] = {}  # unwritten changes
        self._written: OrderedDict[ChatId, Chat] = OrderedDict()  # cache of chats as stored in the file
        self._begun: dict[ChatId, Chat] = {}  # empty chats, which are not written until they have content
        self._under_way: set[ChatId] = set()
        self._deleted: set[ChatId] = set()  # deleted, but can still be restored
        self._gone: set[ChatId] = set()  # deleted for good; a late `save` must not bring them back
        self.closed = False
        self.beginning: NewChatDefaults = lambda: ("", {})  # returns the system message and sampling for new chats
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._write_waiting)
        self._store = HistoryStore(path, self, seal_new=sealed)
        self._store.troubled.connect(self.troubled)
        self._store.recovered.connect(self.recovered)
        self._store.replaced.connect(self._write_again)
        self._purge = Purge(self._store, self)
        self.converter = Converter(self._store, self)
        self.converter.ended.connect(self._converted)
        self.purge()  # complete the deletions that the previous window left unfinished

    @property
    def trouble(self) -> AppError | None:
        """The current error, including any error from opening the file."""
        return self._store.trouble

    @property
    def file(self) -> Path | None:
        """The path of the history file, or None if the chats are only in memory."""
        return self._store.file

    @property
    def locked(self) -> AppError | None:
        """The reason why the encrypted chats are locked, or None. A locked history appears empty and is read-only."""
        return self._store.locked

    @property
    def codec(self) -> Codec:
        """The codec for texts in the file, for code that reads the file in other threads."""
        return self._store.codec

    def new_message_id(self) -> MessageId:
        return MessageId(uuid.uuid4().hex)

    def now(self) -> float:
        return time.time()

    # Reading

    def headings(self, *, archived: bool = False) -> list[Heading]:
        """Return the entries of the current or archived chats: pinned ones first, then the most recently active."""
        return self._headings("archived = ?", archived)

    def heading(self, chat: ChatId) -> Heading | None:
        """Return the list entry of a chat, or None if the chat has not been written or was deleted."""
        headings = self._headings("id = ?", chat)
        return headings[0] if headings else None

    def chat(self, chat: ChatId) -> Chat | None:
        """Return the latest state of a chat, including unsaved changes, or None if there is no such chat."""
        return self._waiting.get(chat) or self._begun.get(chat) or self._stored(chat)

    def folders(self) -> list[str]:
        """Return the names of all folders in alphabetical order, including empty folders."""
        codec = self.codec
        return self._store.read(lambda db: history_rows.folder_names(db, codec), list[str]())

    def search(self, words: str, limit: int = 200) -> list[Hit]:
        """Return the chats, including archived ones, in which the title or a single text contains all words."""
        return [hit for hit in self.search_steps(words, limit) if hit is not None]

    def search_steps(self, words: str, limit: int = 200) -> Iterator[Hit | None]:
        """Search in small steps. Each step yields a result, or None if it found nothing."""
        self._write_waiting()
        codec, indexed = self.codec, self._store.indexed
        if codec.seals:
            yield from history_search.search_sealed(self._store.read, words, limit, codec)
            return
        yield from self._store.read(
            lambda db: history_search.search(db, words, limit, codec, indexed=indexed), list[Hit]()
        )

    # Whole chats

    def begin(self, folder: str = "", model: str | None = None) -> Chat:
        """Start a new chat. It is not saved until it has content, so an unused chat leaves no trace."""
        system, sampling = self.beginning()
        made = Chat(_new_chat_id(), folder=folder, model=model, system=system, sampling=sampling, changed_at=self.now())
        self._begun[made.id] = made
        for old in list(self._begun)[:-CACHED_CHATS]:  # abandoned empty chats
            del self._begun[old]
        return made

    def save(self, chat: Chat) -> None:
        """Write a chat's changes to the file. If that fails, they stay in memory and are retried."""
        self._under_way.discard(chat.id)
        self._note(chat)
        self._write_waiting()

    def save_soon(self, chat: Chat) -> None:
        """Write a chat's changes within a second. Use this for answers in progress and drafts, which change often."""
        self._under_way.add(chat.id)
        self._note(chat)
        if not self._timer.isActive():
            self._timer.start(SAVE_INTERVAL_MS)

    def flush(self) -> None:
        """Write pending changes now."""
        self._write_waiting()

    def close(self) -> None:
        """Write pending changes, permanently remove deleted chats, and close the file."""
        if self.closed:
            return
        self.closed = True
        self.converter.stop()
        self._under_way.clear()
        self._write_waiting()
        self.purge()
        self._purge.finish()
        self._timer.stop()  # no further retries, even if something could not be written
        self._store.close()

    def duplicate(self, chat: ChatId, title: str) -> Chat | None:
        """Copy a chat under a new title. Return the copy, or None if the original no longer exists."""
        old = self.chat(chat)
        return self.adopt(clone(old, chat, title)) if old else None

    def adopt(self, chat: Chat) -> Chat:
        """Store a forked or imported chat under a new ID."""
        made = replace(
            chat,
            id=_new_chat_id(),
            title=normalized_name(chat.title),
            folder=normalized_name(chat.folder),
            changed_at=chat.changed_at or self.now(),
        )
        self.save(made)
        return made

    # Changes made in the list

    def rename(self, chat: ChatId, title: str) -> None:
        """Rename a chat. If the title is empty, the chat is named after its first question again."""
        title = normalized_name(title)
        now = self.chat(chat)
        if now is not None:
            codec = self.codec
            self._headline([chat], lambda db: history_rows.rename(db, now, title, codec), title=title)

    def pin(self, chats: Sequence[ChatId], pinned: bool) -> None:
        """Pin chats to the top of the list, or unpin them."""
        self._flag(chats, "pinned", pinned)

    def archive(self, chats: Sequence[ChatId], archived: bool) -> None:
        """Archive or unarchive chats. Archived chats are still found by searches."""
        self._flag(chats, "archived", archived)

    def move(self, chats: Sequence[ChatId], folder: str) -> None:
        """Move chats into a folder, which is created if necessary. An empty name moves them out of all folders."""
        folder, codec = normalized_name(folder), self.codec
        self._headline(chats, lambda db: history_rows.move_to_folder(db, chats, folder, codec), folder=folder)

    def delete(self, chats: Sequence[ChatId]) -> None:
        """Hide chats immediately. They are permanently removed by `purge` or on the next start of the app."""
        self._write_waiting()
        for chat in chats:
            self._begun.pop(chat, None)
        if self._mark(chats, self.now()):
            self._deleted.update(chats)
            for chat in chats:
                self.removed.emit(chat)

    def restore(self, chats: Sequence[ChatId]) -> None:
        """Undo `delete`. This is possible until `purge` is called."""
        there = [chat for chat in chats if chat not in self._gone]
        if self._mark(there, None):
            self._deleted.difference_update(there)
        self.changed.emit("")

    def purge(self) -> None:
        """Permanently remove deleted chats from the file in small steps."""
        gone = self._store.read(
            lambda db: db.execute("SELECT id FROM chats WHERE deleted_at IS NOT NULL").fetchall(), list[Any]()
        )
        ids = [ident for (ident,) in gone if ident not in self._gone]
        for ident in ids:
            self._gone.add(ident)
            self._waiting.pop(ident, None)
            self._written.pop(ident, None)
        self._purge.begin(ids)

    # Folders

    def make_folder(self, name: str) -> None:
        """Create a folder if it does not exist."""
        name, codec = normalized_name(name), self.codec
        if name and name not in self.folders():
            self._store.write(lambda db: history_rows.ensure_folder(db, name, codec))
            self.changed.emit("")

    def rename_folder(self, name: str, new: str) -> None:
        """Rename a folder. If a folder with the new name exists, they are merged."""
        new = normalized_name(new)
        if not new or new == name:
            return
        inside = self.inside(name)
        self.make_folder(new)
        self.move(inside, new)
        self.delete_folder(name)

    def delete_folder(self, name: str) -> list[ChatId]:
        """Delete a folder but not its chats. Return their IDs, so that the caller can undo this."""
        inside, codec = self.inside(name), self.codec
        self.move(inside, "")
        self._store.write(lambda db: history_rows.remove_folder(db, name, codec))
        self.changed.emit("")
        return inside

    def inside(self, folder: str) -> list[ChatId]:
        """Return the IDs of the chats in a folder, including archived ones."""
        return [heading.id for heading in self._headings() if heading.folder == folder]

    # Encryption

    def unlock(self, key: bytes) -> bool:
        """Try to unlock encrypted chats. Return whether the key is correct; if not, `locked` is the reason."""
        if self.locked is None or not self._store.unlock(cipher := Cipher(key)):
            return self.locked is None
        self._write_again()
        self.purge()
        self.unlocked.emit()
        if not self._store.read(history_file.is_swept, True):
            self.converter.begin(Conversion.SWEEP, cipher)
        return True

    def convert(self, conversion: Conversion, key: bytes | None = None) -> bool:
        """Start encrypting or decrypting all texts, and return whether it started. `converter` reports progress."""
        self._write_waiting()
        self._purge.finish()
        cipher = Cipher(key) if key is not None else self.codec
        return isinstance(cipher, Cipher) and self.converter.begin(conversion, cipher)

    def set_aside(self) -> Path | None:
        """Rename the locked file and start a new history. Return the renamed file, or None if renaming failed."""
        aside = self._store.set_aside()
        if aside is not None:
            self._write_again()
            self.unlocked.emit()
        return aside

    # The file

    def _headings(self, where: str = "1", *values: object) -> list[Heading]:
        codec = self.codec
        return self._store.read(lambda db: history_rows.headings(db, codec, where, values), list[Heading]())

    def _stored(self, ident: ChatId) -> Chat | None:
        """Return a chat as it is in the file. Recently read chats are cached."""
        if ident not in self._written:
            codec = self.codec
            chat = self._store.read(lambda db: history_rows.read(db, ident, codec), None)
            if chat is None:
                return None
            self._written[ident] = chat
        self._written.move_to_end(ident)
        while len(self._written) > CACHED_CHATS:
            self._written.popitem(last=False)
        return self._written[ident]

    def _note(self, chat: Chat) -> None:
        """Queue a chat for writing. Its title, folder and flags are replaced by the current ones."""
        known = self.chat(chat.id)
        now = history_rows.with_headline(chat, known) if known else chat
        if chat.id in self._begun and not (now.messages or now.draft or now.draft_files):
            self._begun[chat.id] = now
        elif chat.id not in self._gone:
            self._waiting[chat.id] = now

    def _write_waiting(self) -> None:
        self._timer.stop()
        failed: list[ChatId] = []
        for ident, chat in list(self._waiting.items()):
            if self._waiting.get(ident) is not chat:  # already written by a slot connected to `changed`
                continue
            before, whole = self._stored(ident), ident not in self._under_way
            write = partial(history_rows.write, chat=chat, before=before, codec=self.codec, whole=whole)
            if not self._store.write(write, later=True):
                failed.append(ident)
                if len(failed) == MAX_FAILURES:
                    break
                continue
            self._written[ident] = chat
            del self._waiting[ident]
            self._begun.pop(ident, None)
            self.changed.emit(ident)
        for ident in failed:  # retried after the others, so that one bad chat does not block them
            if ident in self._waiting:
                self._waiting[ident] = self._waiting.pop(ident)
            self._timer.start(RETRY_MS)

    def _flag(self, chats: Sequence[ChatId], column: str, on: bool) -> None:
        order = f"UPDATE chats SET {column} = ? WHERE id = ?"  # noqa: S608  ours
        rows = [(on, chat) for chat in chats]
        self._headline(chats, lambda db: db.executemany(order, rows), **{column: on})

    def _headline(self, chats: Sequence[ChatId], act: Callable[[sqlite3.Connection], object], **fields: Any) -> None:
        """Write a change made in the list, and apply it to the chats in memory."""
        if not self._store.write(act):
            return
        for chat in chats:
            for store in (self._waiting, self._written, self._begun):
                if chat in store:
                    store[chat] = replace(store[chat], **fields)
        self.changed.emit(chats[0] if len(chats) == 1 else "")

    def _mark(self, chats: Sequence[ChatId], deleted_at: float | None) -> bool:
        rows = [(deleted_at, chat) for chat in chats]
        order = "UPDATE chats SET deleted_at = ? WHERE id = ?"
        return self._store.write(lambda db: db.executemany(order, rows))

    def _converted(self) -> None:
        """Write the changes that were postponed while the file was being converted."""
        self._write_waiting()
        self.changed.emit("")

    def _write_again(self) -> None:
        """Write the chats in memory to the newly opened file."""
        known = {**self._written, **self._waiting}
        self._waiting = {ident: chat for ident, chat in known.items() if ident not in self._deleted}
        self._written.clear()
        self.changed.emit("")
        self._timer.start(0)


def _new_chat_id() -> ChatId:
    return ChatId(uuid.uuid4().hex)
