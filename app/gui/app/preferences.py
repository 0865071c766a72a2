"""The preferences of the window, stored in an INI file, and the defaults for new chats derived from them."""

from __future__ import annotations

import base64
import binascii
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QObject, QSettings, Signal

from app.gui.chat.history.history_cipher import Codec, PlainCodec
from app.gui.look.theme import Scheme

SYSTEM, SEND_KEY = "chat/system", "chat/send_key"
PARAGRAPHS = "chat/read_paragraphs"
# Kinds of desktop notifications, which are on unless the user turns them off
NOTIFY_ANSWERS, NOTIFY_LOSSES, NOTIFY_NEWS = "notify/answers", "notify/losses", "notify/news"
ENTER, CTRL_ENTER = "enter", "ctrl_enter"
PRIVATE = ("presets/system", "chat/system")  # the user's texts that are encrypted if chats are
SEALED = "poolhouse-sealed-1:"  # prefix of an encrypted text, followed by base64
ASIDE = "-locked"  # suffix for the name of a text that was set aside because it cannot be decrypted


TEXT_SCALE = "look/text_scale"
STEP_PERCENT = 10  # between two text sizes


class Preferences(QObject):
    """Typed access to the preferences. `changed` is emitted with the name of a changed preference.

    The texts listed in PRIVATE are encrypted once `use` has received a codec with a key. An encrypted text whose
    key is missing reads as "" and is not overwritten.
    """

    changed = Signal(str)

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._kept = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat, self)
        self._codec: Codec = PlainCodec()

    @property
    def scheme(self) -> Scheme:
        scheme = str(self._kept.value("look/scheme", Scheme.SYSTEM))
        return Scheme(scheme) if scheme in set(Scheme) else Scheme.SYSTEM

    @property
    def text_scale(self) -> float:
        return self.number(TEXT_SCALE, 1.0)

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
        """Store a value under a name of the form `group/name`. A locked text is left unchanged."""
        if self.is_locked(name):
            return
        self._kept.setValue(name, self._sealed(name, str(value)) if name in PRIVATE else value)
        self.changed.emit(name)

    def is_locked(self, name: str) -> bool:
        """Return whether a text is encrypted and cannot be decrypted with the current key."""
        return name in PRIVATE and self._opened(name, str(self._kept.value(name, ""))) is None

    @property
    def has_locked(self) -> bool:
        """Return whether any private text is locked."""
        return any(map(self.is_locked, PRIVATE))

    def use(self, codec: Codec) -> None:
        """Use this codec for private texts from now on, and convert the stored ones."""
        if codec.seals:
            self._codec = codec
        texts = {name: self.text(name) for name in PRIVATE if not self.is_locked(name)}
        self._codec = codec
        for name, text in texts.items():
            kept = str(self._kept.value(name, ""))
            if text and kept.startswith(SEALED) != codec.seals:
                self._kept.setValue(name, self._sealed(name, text))
        self._kept.sync()

    def set_locked_aside(self) -> None:
        """Rename the locked texts, so that new ones can be stored under their names."""
        for name in filter(self.is_locked, PRIVATE):
            self._kept.setValue(name + ASIDE, self._kept.value(name))
            self._kept.remove(name)

    def _sealed(self, name: str, text: str) -> str:
        kept = self._codec.seal(text, "preference", name)
        return kept if isinstance(kept, str) else SEALED + base64.b64encode(kept).decode("ascii")

    def _opened(self, name: str, kept: str) -> str | None:
        """Return the decrypted text, or None if it cannot be decrypted."""
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


@dataclass(frozen=True, slots=True)
class SamplingValue:
    """A sampling parameter, with its name in the node's API, its default, its range and the decimals to show."""

    name: str
    default: float
    least: float
    most: float
    digits: int

    @property
    def key(self) -> str:
        """The name under which the preferences store this parameter."""
        return f"chat/{self.name}"

    def chosen(self, preferences: Preferences) -> float:
        """Return the user's value, clamped to the range."""
        number = preferences.number(self.key, self.default)
        return min(self.most, max(self.least, number))


# Names and defaults are the same as in `sampling` of POST /ask.
SAMPLING_VALUES = (
    SamplingValue("temperature", 0.8, 0.0, 2.0, 2),
    SamplingValue("top_k", 40, 0, 1000, 0),
    SamplingValue("top_p", 0.95, 0.0, 1.0, 2),
    SamplingValue("min_p", 0.05, 0.0, 1.0, 2),
    SamplingValue("repeat_penalty", 1.0, 0.5, 2.0, 2),
)


def sampling(preferences: Preferences) -> dict[str, float | int]:
    """Return the sampling parameters for the body of POST /ask."""
    return {
        value.name: value.chosen(preferences) if value.digits else round(value.chosen(preferences))
        for value in SAMPLING_VALUES
    }


def system_message(preferences: Preferences) -> str:
    """Return the user's system message, or "" if there is none."""
    return preferences.text(SYSTEM).strip()


def sends_with_enter(preferences: Preferences) -> bool:
    """Return whether Enter sends a message. Otherwise, Ctrl+Enter sends it and Enter starts a new line."""
    return preferences.text(SEND_KEY, ENTER) != CTRL_ENTER


def reads_paragraphs(preferences: Preferences) -> bool:
    """Return whether screen readers announce each paragraph once it is complete, not just the whole answer."""
    return preferences.flag(PARAGRAPHS)


def notifies(preferences: Preferences, kind: str) -> bool:
    """Return whether the user wants desktop notifications of this kind."""
    return preferences.flag(kind, default=True)


def new_chat_defaults(preferences: Preferences) -> tuple[str, dict[str, float | int]]:
    """Return the system message for a new chat, and the sampling parameters that the user has changed."""
    now = sampling(preferences)
    changed = {value.name: now[value.name] for value in SAMPLING_VALUES if now[value.name] != value.default}
    return system_message(preferences), changed
