"""Where to save: the end of the name is right, and no file goes that nobody was asked about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QStandardPaths
from PySide6.QtWidgets import QFileDialog, QWidget

from app.gui.app.preferences import Preferences

# Where a person chose a file last, for each purpose; the next dialog opens there.


class LastFolder:
    """Of one purpose: exports are kept elsewhere than what is attached."""

    def __init__(self, preferences: Preferences, purpose: str) -> None:
        self._preferences, self._name = preferences, f"folders/{purpose}"

    def folder(self) -> str:
        """To open a file from. Where none was chosen, or it is gone, the person's own, not the app's."""
        return self._kept() or str(Path.home())

    def offered(self, file: Path) -> Path:
        """To save a file to: its name, in the folder of the last one, else in its own, or the person's documents."""
        documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        own = Path(documents) if Path(documents).is_dir() else Path.home()
        kept = self._kept()
        return Path(kept) / file.name if kept else own / file

    def keep(self, file: Path) -> None:
        """This one was chosen."""
        self._preferences.keep(self._name, str(file.parent))

    def _kept(self) -> str:
        kept = self._preferences.text(self._name)
        return kept if kept and Path(kept).is_dir() else ""


def save_file(parent: QWidget, title: str, offered: Path, kinds: Mapping[str, str], last: LastFolder) -> Path | None:
    """The file a person chooses, or None. kinds: filter of the dialog -> suffix.

    Where the whole name is another than the one typed, and there already, the dialog comes again
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
    """With its suffix: in the place of that of another kind, else after the whole name."""
    if typed.suffix.lower() == suffix:
        return typed
    if typed.suffix.lower() in kinds.values():
        return typed.with_suffix(suffix)
    return typed.with_name(typed.name + suffix)
