"""Words with their control at the right; below them where both have no room side by side."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import QLayoutItem, QWidget

from app.gui.look import theme as sizes
from app.gui.widgets.flow import Items, height_at

LEAST = 24  # characters of a line of words
CENTRE, TOP = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignTop


class Beside(Items):
    """`words` get what is left of the width; `controls` keep their own."""

    def __init__(
        self,
        words: QWidget,
        *controls: QWidget,
        gap: int = sizes.M,
        below: int = sizes.S,
        side: Qt.AlignmentFlag = CENTRE,
        least: int = LEAST,
    ) -> None:
        super().__init__(words, *controls)
        self._gap, self._below, self._side, self._characters = gap, below, side, least

    def set_least(self, characters: int) -> None:
        """So long are lines of the words at least; where there is no room for that, the controls go below."""
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
        high = [one.sizeHint().height() for one in (words, *controls)]
        return self._edged(QSize(wide, max(high)))

    def minimumSize(self) -> QSize:  # noqa: N802  Qt's name
        words, controls = self._parts()
        least = [one.minimumSize() for one in (words, *controls)]
        return self._edged(
            QSize(max(one.width() for one in least), max(one.height() for one in least))
        )

    def _edged(self, size: QSize) -> QSize:
        edges = self.contentsMargins()
        return size + QSize(edges.left() + edges.right(), edges.top() + edges.bottom())

    def _parts(self) -> tuple[QLayoutItem, list[QLayoutItem]]:
        words, *controls = self._items
        return words, [one for one in controls if not one.isEmpty()]

    def _taken(self, controls: list[QLayoutItem]) -> int:
        """By the controls and the gaps before them."""
        return sum(one.sizeHint().width() + self._gap for one in controls)

    def _arrange(self, box: QRect, *, place: bool) -> int:
        """Put everything into `box`; the height it needs."""
        words, controls = self._parts()
        left = box.width() - self._taken(controls)
        if not controls or left >= self._least(words):
            return self._in_a_row(box, left, place=place)
        return self._one_below_another(box, place=place)

    def _least(self, words: QLayoutItem) -> int:
        """So wide are the words at least, in their own size of text."""
        widget = words.widget()
        line = self._characters * widget.fontMetrics().averageCharWidth() if widget else 0
        return max(words.minimumSize().width(), line)

    def _in_a_row(self, box: QRect, left: int, *, place: bool) -> int:
        words, controls = self._parts()
        heights = [height_at(words, left), *(one.sizeHint().height() for one in controls)]
        whole = max(heights)
        if place:
            words.setGeometry(QRect(box.left(), box.top(), left, whole))
            at = box.left() + left + self._gap
            for one in controls:
                size = one.sizeHint()
                down = 0 if self._side is TOP else (whole - size.height()) // 2
                one.setGeometry(QRect(at, box.top() + down, size.width(), size.height()))
                at += size.width() + self._gap
        return whole

    def _one_below_another(self, box: QRect, *, place: bool) -> int:
        """The words, then a line of controls; what is still too wide fills its line and wraps inside."""
        words, controls = self._parts()
        top, wide = box.top(), box.width()
        high = height_at(words, wide)
        if place:
            words.setGeometry(QRect(box.left(), top, wide, high))
        top += high + self._below
        at, line = box.left(), 0
        for one in controls:
            size = one.sizeHint()
            own = min(size.width(), wide)
            if at > box.left() and at + own > box.left() + wide:
                at, top, line = box.left(), top + line + self._below, 0
            tall = height_at(one, own)
            if place:
                one.setGeometry(QRect(at, top, own, tall))
            at, line = at + own + self._gap, max(line, tall)
        return top + line - box.top()
