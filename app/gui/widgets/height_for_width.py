"""What is at least as high as its content at its width: Qt counts words and buttons that go on below as one line."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QLayout


class Whole(QFrame):
    """For what stands in a splitter, which asks for no height at a width."""

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        box, hint = self.shown_layout(), super().minimumSizeHint()
        return hint if box is None else QSize(hint.width(), box.minimumHeightForWidth(self.width()))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()

    def shown_layout(self) -> QLayout | None:
        """Of what is in it now."""
        return self.layout()
