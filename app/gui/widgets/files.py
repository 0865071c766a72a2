"""Support for files dropped on the window, and the dialog that saves a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QStandardPaths, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QWidget

from app.gui.app.preferences import Preferences
from app.gui.look.theme import set_role
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column


class LastFolder:
    """The folder last used for a purpose such as exports or attachments."""

    def __init__(self, preferences: Preferences, purpose: str) -> None:
        self._preferences, self._name = preferences, f"folders/{purpose}"

    def folder(self) -> str:
        """Return the folder in which to open a file dialog. The default is the user's home folder."""
        return self._kept() or str(Path.home())

    def offered(self, file: Path) -> Path:
        """Return the path to suggest for saving a file: in the last folder, or initially in the user's documents."""
        documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        own = Path(documents) if Path(documents).is_dir() else Path.home()
        kept = self._kept()
        return Path(kept) / file.name if kept else own / file

    def keep(self, file: Path) -> None:
        """Remember the folder of this file."""
        self._preferences.keep(self._name, str(file.parent))

    def _kept(self) -> str:
        kept = self._preferences.text(self._name)
        return kept if kept and Path(kept).is_dir() else ""


def save_file(parent: QWidget, title: str, offered: Path, kinds: Mapping[str, str], last: LastFolder) -> Path | None:
    """Ask the user where to save a file. Return its path, or None if canceled.

    kinds: file suffixes keyed by dialog filter. A missing or wrong suffix is corrected. If a file with the
    corrected name exists, the dialog opens again with that name to ask before overwriting.
    """
    offered = last.offered(offered)
    while True:
        name, kind = QFileDialog.getSaveFileName(parent, title, str(offered), ";;".join(kinds))
        if not name:
            return None
        typed = Path(name)
        offered = with_suffix(typed, kinds.get(kind) or next(iter(kinds.values())), kinds)
        if offered == typed or not offered.exists():
            last.keep(offered)
            return offered


def with_suffix(typed: Path, suffix: str, kinds: Mapping[str, str]) -> Path:
    """Return the path with this suffix. A suffix from `kinds` is replaced; any other suffix is kept in the name."""
    if typed.name.lower().endswith(suffix):  # which may have two parts, such as .tar.gz
        return typed
    if typed.suffix.lower() in kinds.values():
        return typed.with_suffix(suffix)
    return typed.with_name(typed.name + suffix)


class FileDrops(QObject):
    """An event filter that accepts files dropped on a widget. `dropped` is emitted with the paths of local files.

    Folders are ignored. `words` is shown while files are dragged over the widget.
    """

    dropped = Signal(list)  # list[str]

    def __init__(self, place: QWidget, words: str) -> None:
        super().__init__(place)
        self._hint = _Hint(place, words)
        place.setAcceptDrops(True)
        place.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if isinstance(event, QDragEnterEvent):
            if _local_files(event.mimeData()):
                event.acceptProposedAction()
                self._hint.cover()
            return True
        if event.type() == QEvent.Type.DragLeave:
            self._hint.hide()
        elif isinstance(event, QDropEvent) and event.type() == QEvent.Type.Drop:
            self._hint.hide()
            event.acceptProposedAction()
            self.dropped.emit(_local_files(event.mimeData()))
            return True
        return False


class _Hint(QFrame):
    """An overlay shown while files are dragged over a widget."""

    def __init__(self, place: QWidget, words: str) -> None:
        super().__init__(place)
        set_role(self, "drop")
        caption = label(words, "section")
        caption.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setLayout(column(caption))
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def cover(self) -> None:
        """Show the overlay over its entire parent."""
        parent = self.parentWidget()
        assert parent is not None
        self.setGeometry(parent.rect())
        self.raise_()
        self.show()


def _local_files(dragged: QMimeData) -> list[str]:
    paths = [url.toLocalFile() for url in dragged.urls() if url.isLocalFile()]
    return [path for path in paths if Path(path).is_file()]
