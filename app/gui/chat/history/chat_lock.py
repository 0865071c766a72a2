"""The lock on the chats, which turns encryption on or off and unlocks them with a key stored by the node."""

from __future__ import annotations

import base64
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.api.computer import HistoryKey
from app.core.errors import AppError, Refused, Unreachable
from app.gui.api.node_client import Call, NodeClient
from app.gui.api.node_state import NodeState
from app.gui.app.preferences import Preferences
from app.gui.chat.history.history import History
from app.gui.chat.history.history_cipher import Cipher, PlainCodec
from app.gui.chat.history.history_conversion import Conversion
from app.gui.chat.history.history_file import FILE, is_sealed

ENCRYPTED_KEY = "chats/encrypted"  # preferences key: whether a new history file is encrypted
# preferences key: names of collapsed folders; not stored while names are encrypted
CLOSED_FOLDERS_KEY = "chats/closed_folders"
KEY_ROUTE = "/history/key"


class ChatLock(QObject):
    """The lock on the history. It opens the file and, if the file is encrypted, unlocks it with the key from the node.

    A key is created only when the user turns encryption on, and it never replaces an existing key.
    """

    changed = Signal()  # any of the properties below has changed
    encryption_changed = Signal(object)  # None, or an AppError if encryption could not be turned on or off

    def __init__(
        self, client: NodeClient, pool: NodeState, preferences: Preferences, folder: Path, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._client, self._preferences = client, preferences
        self._path = folder / FILE
        self._history: History | None = None
        self._call: Call | None = None
        self._is_changing = False  # a change was requested, and the key is being fetched
        self.problem: AppError | None = None  # why the chats are still locked; None if not known yet
        pool.link_changed.connect(self._link_changed)

    @property
    def history(self) -> History:
        """The history. The first access opens its file."""
        if self._history is None or self._history.closed:
            seal_new = self._preferences.flag(ENCRYPTED_KEY)
            self._history = History(self._path, self, sealed=seal_new)
            self._history.unlocked.connect(self._notify)
            self._history.converter.ended.connect(self._converted)
            self.problem = None
            if self.is_locked:
                self._fetch_key()
            else:
                self._remember()
                if self._has_locked_words:
                    self._fetch_key()
        return self._history

    @property
    def is_on(self) -> bool:
        """Return whether the chats are encrypted, even while they are locked."""
        known = self._history
        if known is None or known.closed:
            return self._preferences.flag(ENCRYPTED_KEY)
        return known.locked is not None or known.codec.seals

    @property
    def _has_locked_words(self) -> bool:
        """Return whether preferences are still encrypted after the command line has decrypted the chats."""
        return not self.is_on and self._preferences.has_locked

    @property
    def is_locked(self) -> bool:
        return self._history is not None and self._history.locked is not None

    @property
    def is_busy(self) -> bool:
        """Return whether encryption is being turned on or off."""
        return self._is_changing or (self._history is not None and self._history.converter.busy)

    def request_key(self) -> None:
        """Request the key if the chats are encrypted, because some preferences are encrypted with it as well."""
        if self.is_on:
            _ = self.history

    def try_again(self) -> None:
        """Request the key again, for example after the user has unlocked the keyring or restored the key."""
        if self.is_locked:
            self.problem = None
            self.changed.emit()
            self._fetch_key()

    def set_encryption(self, on: bool) -> None:
        """Turn encryption on or off. `encryption_changed` is emitted when this has succeeded or failed."""
        if self.is_busy or on == self.is_on or self.is_locked or self.history.locked is not None:
            self.encryption_changed.emit(self.problem or self.history.locked)
            return
        self._is_changing = True
        self.changed.emit()
        if on:
            self._call = self._client.post(KEY_ROUTE, None, self._key_created, self._change_failed, answer=HistoryKey)
        else:
            self._preferences.use(PlainCodec())  # must come first, while the key is still available
            self._begin(Conversion.OPEN, None)

    def start_new_history(self) -> Path | None:
        """Rename the locked file and start a new history. Return the renamed file, or None if renaming failed."""
        aside = self.history.set_aside()
        if aside is None:
            self.problem = self.history.trouble
        else:
            self._preferences.set_locked_aside()
            self.history.troubled.emit(Refused("history_locked_aside", path=str(aside)))
        self._notify()
        return aside

    def readable_leftovers(self) -> list[str]:
        """Return the names of older history files in the same folder that are not encrypted."""
        beside = sorted(self._path.parent.glob(f"{self._path.stem}-*{self._path.suffix}"))
        return [file.name for file in beside if file != self.history.file and not is_sealed(file)]

    def close(self) -> None:
        """Close the history."""
        self._cancel()
        if self._history is not None:
            self._history.close()

    def _link_changed(self) -> None:
        if (self.is_locked and self.problem is None) or self._has_locked_words:
            self._fetch_key()

    def _fetch_key(self) -> None:
        if self._client.endpoint is not None and (self._call is None or not self._call.running):
            self._call = self._client.get(KEY_ROUTE, self._key_received, self._key_failed, answer=HistoryKey)

    def _key_received(self, answer: HistoryKey) -> None:
        key, place = answer.key, answer.place
        if not self.is_locked:
            if key is not None and self._has_locked_words:
                self._preferences.use(Cipher(base64.b64decode(key)))
                self._preferences.use(PlainCodec())
            return
        if key is None:
            self.problem = Refused("history_key_gone", place=place, path=str(self._path))
        elif not self.history.unlock(base64.b64decode(key)):
            self.problem = self.history.locked
            if self.problem is not None and self.problem.reason.code == "history_key_wrong":
                self.problem = Refused("history_key_wrong", place=place, path=str(self._path))
        self.changed.emit()

    def _key_failed(self, error: AppError) -> None:
        if not isinstance(error, Unreachable):  # an unreachable node is asked again once it is back
            self.problem = error
            self.changed.emit()

    def _key_created(self, answer: HistoryKey) -> None:
        self._begin(Conversion.SEAL, base64.b64decode(answer.key or ""))

    def _begin(self, conversion: Conversion, key: bytes | None) -> None:
        self._is_changing = False
        if self.history.convert(conversion, key):
            self.changed.emit()
        else:  # the history exists only in memory, which was already reported
            self._preferences.use(self.history.codec)
            self._change_failed(self.history.trouble or Refused("history_busy"))

    def _change_failed(self, error: AppError) -> None:
        self._is_changing = False
        self.changed.emit()
        self.encryption_changed.emit(error)

    def _converted(self, error: AppError | None) -> None:
        self._notify()
        self.encryption_changed.emit(error)

    def _notify(self) -> None:
        self._remember()
        self.changed.emit()

    def _remember(self) -> None:
        """Record in the preferences whether the chats are encrypted, in case the history file is lost."""
        if self.is_locked or self.history.file is None:
            return
        if self.is_on != self._preferences.flag(ENCRYPTED_KEY):
            self._preferences.keep(ENCRYPTED_KEY, self.is_on)
        if self.is_on:
            self._preferences.forget(CLOSED_FOLDERS_KEY)
        self._preferences.use(self.history.codec)

    def _cancel(self) -> None:
        if self._call is not None and self._call.running:
            self._call.cancel()
