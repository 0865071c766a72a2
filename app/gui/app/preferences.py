"""The preferences of the window: a small INI file in the node's home."""

from __future__ import annotations

import base64
import binascii
import sqlite3
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QObject, QSettings, Signal

from app.gui.chat.history.history_cipher import Codec, Plain
from app.gui.look.theme import Scheme

PRIVATE = ("presets/system", "chat/system")  # words of a person: encrypted where chats are
SEALED = "poolhouse-sealed-1:"  # before such a text, in base64
ASIDE = "-locked"  # after the name of one that nobody can open


class Preferences(QObject):
    """Typed access to the preferences; `changed` names a preference with a new value.

    PRIVATE texts are encrypted once `use` has received a key. Until then, encrypted ones read as empty and stay.
    """

    changed = Signal(str)

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._kept = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat, self)
        self._codec: Codec = Plain()

    @property
    def scheme(self) -> Scheme:
        scheme = str(self._kept.value("look/scheme", Scheme.SYSTEM))
        return Scheme(scheme) if scheme in set(Scheme) else Scheme.SYSTEM

    @property
    def text_scale(self) -> float:
        return self.number("look/text_scale", 1.0)

    @property
    def geometry(self) -> QByteArray | None:
        geometry = self._kept.value("window/geometry")
        return geometry if isinstance(geometry, QByteArray) else None

    def flag(self, name: str, default: bool = False) -> bool:
        return str(self._kept.value(name, default)).lower() == "true"

    def number(self, name: str, default: float) -> float:
        try:
            return float(self._kept.value(name, default))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return default

    def text(self, name: str, default: str = "") -> str:
        stored = str(self._kept.value(name, default))
        return self._opened(name, stored) or "" if name in PRIVATE else stored

    def keep(self, name: str, value: Any) -> None:
        """Store a value under `group/name`. Locked texts stay as they are."""
        if self.is_locked(name):
            return
        self._kept.setValue(name, self._sealed(name, str(value)) if name in PRIVATE else value)
        self.changed.emit(name)

    def is_locked(self, name: str) -> bool:
        """Return whether a text is encrypted and its key is not there."""
        return name in PRIVATE and self._opened(name, str(self._kept.value(name, ""))) is None

    @property
    def has_locked(self) -> bool:
        """Return whether any private text is encrypted and its key is not there."""
        return any(map(self.is_locked, PRIVATE))

    def use(self, codec: Codec) -> None:
        """Store private texts with this codec from now on, including those that are already stored."""
        if codec.seals:
            self._codec = codec
        texts = {name: self.text(name) for name in PRIVATE if not self.is_locked(name)}
        self._codec = codec
        for name, text in texts.items():
            kept = str(self._kept.value(name, ""))
            if text and kept.startswith(SEALED) != codec.seals:
                self._kept.setValue(name, self._sealed(name, text))
        self._kept.sync()

    def put_locked_aside(self) -> None:
        """Rename texts that cannot be decrypted, so that new ones can be stored."""
        for name in filter(self.is_locked, PRIVATE):
            self._kept.setValue(name + ASIDE, self._kept.value(name))
            self._kept.remove(name)

    def _sealed(self, name: str, text: str) -> str:
        kept = self._codec.seal(text, "preference", name)
        return kept if isinstance(kept, str) else SEALED + base64.b64encode(kept).decode("ascii")

    def _opened(self, name: str, kept: str) -> str | None:
        """Return the decrypted text; None if it cannot be decrypted."""
        if not kept.startswith(SEALED):
            return kept
        try:
            sealed = base64.b64decode(kept[len(SEALED) :], validate=True)
            return self._codec.open(sealed, "preference", name)
        except (binascii.Error, sqlite3.DatabaseError):
            return None

    def forget(self, name: str) -> None:
        """Reset a preference to its default."""
        self._kept.remove(name)
        self.changed.emit(name)
