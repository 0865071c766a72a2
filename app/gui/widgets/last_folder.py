"""Where a person chose a file last, for each purpose; the next dialog opens there."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QStandardPaths

from app.gui.app.preferences import Preferences


class LastFolder:
    """Of one purpose: exports are kept elsewhere than what is attached."""

    def __init__(self, preferences: Preferences, purpose: str) -> None:
        self._preferences, self._name = preferences, f"folders/{purpose}"

    def folder(self) -> str:
        """To open a file from. Where none was chosen, or it is gone, the person's own, not the app's."""
        return self._kept() or str(Path.home())

    def offered(self, file: Path) -> Path:
        """To save a file to: its name, in the folder of the last one, else in its own, or the person's documents."""
        documents = QStandardPaths.writableLocation(
            QStandardPaths.StandardLocation.DocumentsLocation
        )
        own = Path(documents) if Path(documents).is_dir() else Path.home()
        kept = self._kept()
        return Path(kept) / file.name if kept else own / file

    def keep(self, file: Path) -> None:
        """This one was chosen."""
        self._preferences.keep(self._name, str(file.parent))

    def _kept(self) -> str:
        kept = self._preferences.text(self._name)
        return kept if kept and Path(kept).is_dir() else ""
