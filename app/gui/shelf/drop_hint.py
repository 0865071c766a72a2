"""What covers the page while a file is dragged over it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, Qt
from PySide6.QtWidgets import QFrame, QWidget

from app.gui.parts.layouts import column
from app.gui.parts.text import label
from app.gui.theme import set_role


class DropHint(QFrame):
    """Hidden until something comes."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        set_role(self, "drop")
        words = label(self.tr("Let go to add this model"), "section")
        words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setLayout(column(words))
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def cover(self) -> None:
        """The whole of its parent."""
        parent = self.parentWidget()
        assert parent is not None
        self.setGeometry(parent.rect())
        self.raise_()
        self.show()


def local_files(dragged: QMimeData) -> list[str]:
    """Paths of files of this computer in what is dragged; folders are none."""
    paths = [url.toLocalFile() for url in dragged.urls() if url.isLocalFile()]
    return [path for path in paths if Path(path).is_file()]
