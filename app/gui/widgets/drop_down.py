"""A box to choose from, whose list looks like a menu."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QComboBox, QStyledItemDelegate, QWidget

from app.gui.widgets.labels import SPARE


class DropDown(QComboBox):
    """Qt's own list has square corners, and paints its lines without the style sheet."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setItemDelegate(QStyledItemDelegate(self))

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        """Qt leaves its longest line no pixel, and paints it with one less at either side."""
        return super().sizeHint() + QSize(SPARE, 0)

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return super().minimumSizeHint() + QSize(SPARE, 0)

    def showPopup(self) -> None:  # noqa: N802  Qt's name
        around = self.view().window()
        if not around.testAttribute(Qt.WidgetAttribute.WA_TranslucentBackground):
            flags = Qt.WindowType.FramelessWindowHint | Qt.WindowType.NoDropShadowWindowHint
            around.setWindowFlags(around.windowFlags() | flags)
            around.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        super().showPopup()
