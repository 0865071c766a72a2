"""Layouts that adapt to their width, either by wrapping a row or by moving controls below the text beside them."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLayout, QLayoutItem, QSizePolicy, QWidget, QWidgetItem

from app.gui.look import sizes


class FlexibleLayout(QLayout):
    """The base class of layouts whose height depends on their width."""

    def __init__(self, *widgets: QWidget) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self._heights: dict[int, int] = {}  # keyed by width; Qt asks about a hundred times before the first paint
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
        """Clear the cached heights, because an item has changed."""
        self._heights.clear()
        super().invalidate()

    def height_at(self, width: int) -> int:
        """Return the height that all items need at this width."""
        raise NotImplementedError


def height_at(item: QLayoutItem, width: int) -> int:
    """Return the height that an item needs at this width."""
    if isinstance(item, QWidgetItem) and item.hasHeightForWidth():
        return item.heightForWidth(width)
    return item.sizeHint().height()


class Flow(FlexibleLayout):
    """A row of left-aligned items that wraps into several lines.

    If all items fit on one line, some can be right-aligned: the last one if `last_right` is set, or all items from
    index `right_from` on.
    """

    def __init__(
        self, *widgets: QWidget, gap: int = sizes.S, last_right: bool = False, right_from: int | None = None
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
        widths, heights = [size.width() for size in shown], [size.height() for size in shown]
        return QSize(max(widths, default=0), max(heights, default=0))

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _arrange(self, box: QRect, *, place: bool) -> int:
        """Arrange the items in lines and return their total height. The items are moved only if `place` is set."""
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
            item.setGeometry(QRect(QPoint(left, box.top() + (box.height() - high) // 2), QSize(wide, high)))
            left += wide + self._gap

    def _first_right(self, line: list[QLayoutItem]) -> QLayoutItem | None:
        """Return the first right-aligned item of a single-line row, or None."""
        if self._last_right:
            return line[-1] if len(line) > 1 else None
        after = len(self._items) if self.right_from is None else self.right_from
        return next((item for item in self._items[after:] if item in line), None)


def _needed(item: QLayoutItem) -> int:
    """Return the width that an item needs to stay on the current line. For a text field, this is its minimum width."""
    widget = item.widget()
    least = widget.minimumWidth() if widget is not None and _grows(item) else 0
    return least or item.sizeHint().width()


def _grows(item: QLayoutItem) -> bool:
    """Return whether an item takes up the remaining width, as text fields do."""
    widget = item.widget()
    policy = widget.sizePolicy().horizontalPolicy() if widget is not None else None
    return policy is QSizePolicy.Policy.Expanding


def _high(item: QLayoutItem, room: int) -> int:
    """Return the height of an item. If an item is wider than the line, its content wraps."""
    wide = item.sizeHint().width()
    return height_at(item, room) if wide > room else item.sizeHint().height()


class FlowRow(QWidget):
    """A widget as tall as its row of wrapping items needs at its current width.

    It hides its height-for-width from Qt. Otherwise, a scrolled column would reserve the height of the narrowest width.
    """

    def __init__(self, flow: Flow) -> None:
        super().__init__()
        self._flow = flow
        self.setLayout(flow)

    def hasHeightForWidth(self) -> bool:  # noqa: N802  Qt's name
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self.fit()

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.LayoutRequest:
            self.fit()
        return super().event(event)

    def fit(self) -> None:
        """Adjust the height to the items."""
        height = self._flow.heightForWidth(self.width())
        if height != self.minimumHeight():
            self.setFixedHeight(height)


LEAST = 24  # minimum characters per line
CENTER, TOP = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignTop


class Beside(FlexibleLayout):
    """A layout that places controls beside a text, or below it if there is not enough width."""

    def __init__(
        self,
        words: QWidget,
        *controls: QWidget,
        gap: int = sizes.M,
        below: int = sizes.S,
        side: Qt.AlignmentFlag = CENTER,
        least: int = LEAST,
    ) -> None:
        super().__init__(words, *controls)
        self._gap, self._below, self._side, self._characters = gap, below, side, least

    def set_least(self, characters: int) -> None:
        """Set the minimum number of characters per line of text.

        If there is less space, the controls go below the text.
        """
        self._characters = characters
        self.invalidate()

    def height_at(self, width: int) -> int:
        edges = self.contentsMargins()
        inner = QRect(0, 0, width - edges.left() - edges.right(), 0)
        return self._arrange(inner, place=False) + edges.top() + edges.bottom()

    def setGeometry(self, box: QRect) -> None:  # noqa: N802  Qt's name
        super().setGeometry(box)
        self._arrange(self.contentsRect(), place=True)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        words, controls = self._parts()
        wide = words.sizeHint().width() + self._taken(controls)
        high = [item.sizeHint().height() for item in (words, *controls)]
        return self._edged(QSize(wide, max(high)))

    def minimumSize(self) -> QSize:  # noqa: N802  Qt's name
        words, controls = self._parts()
        least = [item.minimumSize() for item in (words, *controls)]
        return self._edged(QSize(max(size.width() for size in least), max(size.height() for size in least)))

    def _edged(self, size: QSize) -> QSize:
        edges = self.contentsMargins()
        return size + QSize(edges.left() + edges.right(), edges.top() + edges.bottom())

    def _parts(self) -> tuple[QLayoutItem, list[QLayoutItem]]:
        words, *controls = self._items
        return words, [control for control in controls if not control.isEmpty()]

    def _taken(self, controls: list[QLayoutItem]) -> int:
        """Return the total width of the controls, including the gap before each of them."""
        return sum(control.sizeHint().width() + self._gap for control in controls)

    def _arrange(self, box: QRect, *, place: bool) -> int:
        """Arrange the text and controls and return their height. They are moved only if `place` is set."""
        words, controls = self._parts()
        left = box.width() - self._taken(controls)
        if not controls or left >= self._least(words):
            return self._in_a_row(box, left, place=place)
        return self._one_below_another(box, place=place)

    def _least(self, words: QLayoutItem) -> int:
        """Return the minimum width of the text in its current font."""
        widget = words.widget()
        line = self._characters * widget.fontMetrics().averageCharWidth() if widget else 0
        return max(words.minimumSize().width(), line)

    def _in_a_row(self, box: QRect, left: int, *, place: bool) -> int:
        words, controls = self._parts()
        heights = [height_at(words, left), *(control.sizeHint().height() for control in controls)]
        whole = max(heights)
        if place:
            words.setGeometry(QRect(box.left(), box.top(), left, whole))
            at = box.left() + left + self._gap
            for control in controls:
                size = control.sizeHint()
                down = 0 if self._side is TOP else (whole - size.height()) // 2
                control.setGeometry(QRect(at, box.top() + down, size.width(), size.height()))
                at += size.width() + self._gap
        return whole

    def _one_below_another(self, box: QRect, *, place: bool) -> int:
        """Arrange the controls in lines below the text.

        A control that is wider than the line gets its own line and wraps.
        """
        words, controls = self._parts()
        top, wide = box.top(), box.width()
        high = height_at(words, wide)
        if place:
            words.setGeometry(QRect(box.left(), top, wide, high))
        top += high + self._below
        at, line = box.left(), 0
        for control in controls:
            size = control.sizeHint()
            own = min(size.width(), wide)
            if at > box.left() and at + own > box.left() + wide:
                at, top, line = box.left(), top + line + self._below, 0
            tall = height_at(control, own)
            if place:
                control.setGeometry(QRect(at, top, own, tall))
            at, line = at + own + self._gap, max(line, tall)
        return top + line - box.top()
