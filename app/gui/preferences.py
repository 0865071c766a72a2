"""What this person chose for the window; one small INI file in the node's home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QObject, QSettings, Signal

from app.gui.theme import Scheme


class Preferences(QObject):
    """Typed access; `changed` names what is another now."""

    changed = Signal(str)

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._kept = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat, self)

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
        return str(self._kept.value(name, default))

    def keep(self, name: str, value: Any) -> None:
        """Write it down; names are `group/name`."""
        self._kept.setValue(name, value)
        self.changed.emit(name)

    def forget(self, name: str) -> None:
        """Back to its default."""
        self._kept.remove(name)
        self.changed.emit(name)
