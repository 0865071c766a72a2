"""What layouts of our own have in common: a list of items, and a height that depends on the width."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget, QWidgetItem


class Items(QLayout):
    """Subclasses say how high they are at a width, and put their items into a rectangle."""

    def __init__(self, *widgets: QWidget) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self._heights: dict[int, int] = {}  # by widths: Qt asks a hundred times before it is seen
        self.setContentsMargins(0, 0, 0, 0)
        for widget in widgets:
            self.addWidget(widget)

    def addItem(self, item: QLayoutItem) -> None:  # noqa: N802  Qt's name
        self._heights.clear()
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # noqa: N802  Qt's name
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # noqa: N802  Qt's name
        self._heights.clear()
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:  # noqa: N802  Qt's name
        return Qt.Orientation.Horizontal

    def hasHeightForWidth(self) -> bool:  # noqa: N802  Qt's name
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: N802  Qt's name
        if width not in self._heights:
            self._heights[width] = self.height_at(width)
        return self._heights[width]

    def invalidate(self) -> None:
        """Something inside is another: Qt says so of all that it keeps itself, too."""
        self._heights.clear()
        super().invalidate()

    def height_at(self, width: int) -> int:
        """So high are all items at this width."""
        raise NotImplementedError


def height_at(item: QLayoutItem, width: int) -> int:
    """Of an item that is so wide."""
    if isinstance(item, QWidgetItem) and item.hasHeightForWidth():
        return item.heightForWidth(width)
    return item.sizeHint().height()
