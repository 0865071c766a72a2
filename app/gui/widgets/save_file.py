"""File dialogs for saving: the suffix is corrected, and no file is overwritten without a question."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QStandardPaths
from PySide6.QtWidgets import QFileDialog, QWidget

from app.gui.app.preferences import Preferences


class LastFolder:
    """The folder that was chosen last for one purpose, like exports or attachments."""

    def __init__(self, preferences: Preferences, purpose: str) -> None:
        self._preferences, self._name = preferences, f"folders/{purpose}"

    def folder(self) -> str:
        """Return the folder to open a file from; without one, the person's home folder."""
        return self._kept() or str(Path.home())

    def offered(self, file: Path) -> Path:
        """Return the path to suggest: in the last folder, or else in the file's own, or in the person's documents."""
        documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        own = Path(documents) if Path(documents).is_dir() else Path.home()
        kept = self._kept()
        return Path(kept) / file.name if kept else own / file

    def keep(self, file: Path) -> None:
        """Remember the folder of a chosen file."""
        self._preferences.keep(self._name, str(file.parent))

    def _kept(self) -> str:
        kept = self._preferences.text(self._name)
        return kept if kept and Path(kept).is_dir() else ""


def save_file(parent: QWidget, title: str, offered: Path, kinds: Mapping[str, str], last: LastFolder) -> Path | None:
    """Return the file that a person chooses, or None. kinds: suffixes by filter of the dialog.

    If the corrected name differs from the typed one and exists already, the dialog opens again
    with it, so that it asks itself.
    """
    offered = last.offered(offered)
    while True:
        name, kind = QFileDialog.getSaveFileName(parent, title, str(offered), ";;".join(kinds))
        if not name:
            return None
        typed = Path(name)
        offered = ended(typed, kinds.get(kind) or next(iter(kinds.values())), kinds)
        if offered == typed or not offered.exists():
            last.keep(offered)
            return offered


def ended(typed: Path, suffix: str, kinds: Mapping[str, str]) -> Path:
    """Return a path with its suffix, which replaces that of another kind."""
    if typed.suffix.lower() == suffix:
        return typed
    if typed.suffix.lower() in kinds.values():
        return typed.with_suffix(suffix)
    return typed.with_name(typed.name + suffix)
