"""Drag and drop of files onto a part of the window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFrame, QWidget

from app.gui.look.theme import set_role
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column


class Drops(QObject):
    """Accepts files that are dropped on `place`. `dropped` has the paths of local files, without folders."""

    dropped = Signal(list)  # of str

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
    """Covers the place while a file is dragged over it."""

    def __init__(self, place: QWidget, words: str) -> None:
        super().__init__(place)
        set_role(self, "drop")
        caption = label(words, "section")
        caption.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setLayout(column(caption))
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def cover(self) -> None:
        """Cover the parent."""
        parent = self.parentWidget()
        assert parent is not None
        self.setGeometry(parent.rect())
        self.raise_()
        self.show()


def _local_files(dragged: QMimeData) -> list[str]:
    paths = [url.toLocalFile() for url in dragged.urls() if url.isLocalFile()]
    return [path for path in paths if Path(path).is_file()]
