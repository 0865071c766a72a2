"""A row that goes on in the next line where it is too long, as text does."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QSizePolicy, QWidget, QWidgetItem

from app.gui.look import theme as sizes

# What layouts of our own have in common: a list of items, and a height that depends on the width.


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


class Flow(Items):
    """Side by side from the left. `last_right`: in a single line the last one stands at the right.

    `right_from`: so do, together, all from that one on.
    """

    def __init__(
        self,
        *widgets: QWidget,
        gap: int = sizes.S,
        last_right: bool = False,
        right_from: int | None = None,
    ) -> None:
        super().__init__(*widgets)
        self._gap, self._last_right, self.right_from = gap, last_right, right_from

    def height_at(self, width: int) -> int:
        return self._arrange(QRect(0, 0, width, 0), place=False)

    def setGeometry(self, box: QRect) -> None:  # noqa: N802  Qt's name
        super().setGeometry(box)
        self._arrange(box, place=True)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        shown = [item.sizeHint() for item in self._shown()]
        wide = sum(size.width() for size in shown) + self._gap * max(0, len(shown) - 1)
        return QSize(wide, max((size.height() for size in shown), default=0))

    def minimumSize(self) -> QSize:  # noqa: N802  Qt's name
        shown = [item.minimumSize() for item in self._shown()]
        widths, heights = [one.width() for one in shown], [one.height() for one in shown]
        return QSize(max(widths, default=0), max(heights, default=0))

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _arrange(self, box: QRect, *, place: bool) -> int:
        """Fill lines; the height they need."""
        lines: list[list[QLayoutItem]] = [[]]
        left = 0
        for item in self._shown():
            wide = _needed(item)
            if lines[-1] and left + wide > box.width():
                lines.append([])
                left = 0
            lines[-1].append(item)
            left += wide + self._gap
        top = box.top()
        for line in lines:
            high = max((_high(item, box.width()) for item in line), default=0)
            if place:
                self._place(line, QRect(box.left(), top, box.width(), high), len(lines) == 1)
            top += high + self._gap
        return max(0, top - self._gap - box.top())

    def _place(self, line: list[QLayoutItem], box: QRect, only: bool) -> None:
        hints = [_needed(item) for item in line]
        fixed = sum(hints) + self._gap * (len(line) - 1)
        grows = sum(map(_grows, line))
        extra = max(0, box.width() - fixed) // grows if grows else 0
        widths = [
            min(box.width(), item.maximumSize().width(), hint + (extra if _grows(item) else 0))
            for item, hint in zip(line, hints, strict=True)
        ]
        left, jumps = box.left(), self._first_right(line) if only else None
        over = max(0, box.width() - sum(widths) - self._gap * (len(line) - 1))
        for item, wide in zip(line, widths, strict=True):
            left += over if item is jumps else 0
            high = _high(item, box.width())
            item.setGeometry(
                QRect(QPoint(left, box.top() + (box.height() - high) // 2), QSize(wide, high))
            )
            left += wide + self._gap

    def _first_right(self, line: list[QLayoutItem]) -> QLayoutItem | None:
        """With it begins what stands at the right."""
        if self._last_right:
            return line[-1] if len(line) > 1 else None
        after = len(self._items) if self.right_from is None else self.right_from
        return next((item for item in self._items[after:] if item in line), None)


def _needed(item: QLayoutItem) -> int:
    """A field for text that says how narrow it may be is as narrow before the line is broken."""
    widget = item.widget()
    least = widget.minimumWidth() if widget is not None and _grows(item) else 0
    return least or item.sizeHint().width()


def _grows(item: QLayoutItem) -> bool:
    """A field for text takes the room that is left."""
    widget = item.widget()
    policy = widget.sizePolicy().horizontalPolicy() if widget is not None else None
    return policy is QSizePolicy.Policy.Expanding


def _high(item: QLayoutItem, room: int) -> int:
    """What is wider than the whole line goes on inside, where it can."""
    wide = item.sizeHint().width()
    return height_at(item, room) if wide > room else item.sizeHint().height()
