"""What this person chose for the window; one small INI file in the node's home."""

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
    """Typed access; `changed` names what is another now.

    PRIVATE texts are encrypted while `use` was given a key; before that, those that are seem empty, and stay.
    """

    changed = Signal(str)

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._kept = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat, self)
        self._codec: Codec = Plain()

    @property
    def scheme(self) -> Scheme:
        found = str(self._kept.value("look/scheme", Scheme.SYSTEM))
        return Scheme(found) if found in set(Scheme) else Scheme.SYSTEM

    @property
    def text_scale(self) -> float:
        return self.number("look/text_scale", 1.0)

    @property
    def geometry(self) -> QByteArray | None:
        found = self._kept.value("window/geometry")
        return found if isinstance(found, QByteArray) else None

    def flag(self, name: str, default: bool = False) -> bool:
        return str(self._kept.value(name, default)).lower() == "true"

    def number(self, name: str, default: float) -> float:
        try:
            return float(self._kept.value(name, default))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return default

    def text(self, name: str, default: str = "") -> str:
        found = str(self._kept.value(name, default))
        return self._opened(name, found) or "" if name in PRIVATE else found

    def keep(self, name: str, value: Any) -> None:
        """Write it down; names are `group/name`. What is locked stays as it is."""
        if self.is_locked(name):
            return
        self._kept.setValue(name, self._sealed(name, str(value)) if name in PRIVATE else value)
        self.changed.emit(name)

    def is_locked(self, name: str) -> bool:
        """Whether it is encrypted, and the key is not there."""
        return name in PRIVATE and self._opened(name, str(self._kept.value(name, ""))) is None

    @property
    def has_locked(self) -> bool:
        """Whether a private text is encrypted, and the key is not there."""
        return any(map(self.is_locked, PRIVATE))

    def use(self, codec: Codec) -> None:
        """Private texts are kept so from now on, those that are there too."""
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
        """What nobody can open, under another name; so others can be kept."""
        for name in filter(self.is_locked, PRIVATE):
            self._kept.setValue(name + ASIDE, self._kept.value(name))
            self._kept.remove(name)

    def _sealed(self, name: str, text: str) -> str:
        kept = self._codec.seal(text, "preference", name)
        return kept if isinstance(kept, str) else SEALED + base64.b64encode(kept).decode("ascii")

    def _opened(self, name: str, kept: str) -> str | None:
        """None: it does not open."""
        if not kept.startswith(SEALED):
            return kept
        try:
            sealed = base64.b64decode(kept[len(SEALED) :], validate=True)
            return self._codec.open(sealed, "preference", name)
        except (binascii.Error, sqlite3.DatabaseError):
            return None

    def forget(self, name: str) -> None:
        """Back to its default."""
        self._kept.remove(name)
        self.changed.emit(name)
