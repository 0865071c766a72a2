"""A small text that wraps, in a place whose height must be known before its width is."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy

from app.gui.look.theme import set_role


class Wrapped(QLabel):
    """A label that is as high as its text at its width, and says no more about it.

    A scrolled column of labels that wrap would ask for the height of all at their narrowest.
    """

    def __init__(self, text: str, role: str) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        set_role(self, role)
        self.setWordWrap(True)
        self.setText(text)
        self.setAccessibleName(text)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def hasHeightForWidth(self) -> bool:  # noqa: N802  Qt's name
        return False

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(0, self.heightForWidth(self.width()))

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()
