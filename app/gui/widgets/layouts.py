"""Shortcuts for rows, columns and cards, column widths of tables, and the placeholder of an empty page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QLayout,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.gui.look import sizes
from app.gui.look.theme import set_role
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.scroll_area import ScrollArea


class Columns(QObject):
    """A helper that sizes the columns of a table to fit their content.

    The column `rest` takes the remaining width. A table that is still too wide scrolls horizontally. `bar_changed`
    is called when its scroll bar appears or disappears.
    """

    def __init__(self, table: QTableView, rest: int, bar_changed: Callable[[], object]) -> None:
        super().__init__(table)
        self._table, self._rest, self._bar_changed = table, rest, bar_changed
        self._fits, self._placing = True, False
        table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        table.setHorizontalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
        header = table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(rest, QHeaderView.ResizeMode.Fixed)
        header.sectionResized.connect(self._resized)
        table.model().modelReset.connect(self._place)
        table.viewport().installEventFilter(self)

    @property
    def bar_height(self) -> int:
        """The height of the horizontal scroll bar, or 0 if it is hidden."""
        return 0 if self._fits else self._table.horizontalScrollBar().sizeHint().height()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def _resized(self, column: int) -> None:
        if column != self._rest:
            self._place()

    def _place(self) -> None:
        if self._placing:
            return
        self._placing = True
        header, table = self._table.horizontalHeader(), self._table
        other_columns = header.length() - header.sectionSize(self._rest)
        least = max(table.sizeHintForColumn(self._rest), header.sectionSizeHint(self._rest))
        left = table.viewport().width() - other_columns
        header.resizeSection(self._rest, max(least, left))
        self._placing = False
        if self._fits != (left >= least):
            self._fits = left >= least
            self._bar_changed()


Item = QWidget | QLayout | None  # None stands for a stretch
B = TypeVar("B", bound=QBoxLayout)


def row(*items: Item, gap: int = sizes.S) -> QHBoxLayout:
    """Return a horizontal layout with these items."""
    return _filled(QHBoxLayout(), items, gap)


def column(*items: Item, gap: int = sizes.S) -> QVBoxLayout:
    """Return a vertical layout with these items."""
    return _filled(QVBoxLayout(), items, gap)


def _filled(box: B, items: tuple[Item, ...], gap: int) -> B:
    box.setSpacing(gap)
    box.setContentsMargins(0, 0, 0, 0)
    for item in items:
        if item is None:
            box.addStretch(1)
        elif isinstance(item, QWidget):
            box.addWidget(item)
        else:
            box.addLayout(item)
    return box


def card(*items: Item, gap: int = sizes.M, parent: QWidget | None = None) -> QFrame:
    """Return a frame styled as a card, with these items stacked vertically."""
    frame = QFrame(parent)
    set_role(frame, "card")
    box = column(*items, gap=gap)
    box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
    frame.setLayout(box)
    return frame


def line() -> QFrame:
    """Return a thin horizontal separator."""
    frame = QFrame()
    set_role(frame, "line")
    return frame


def scrolled(content: QWidget) -> ScrollArea:
    """Wrap a widget in a view that scrolls vertically."""
    return ScrollArea(content)


def layout_widget(layout: QLayout) -> QWidget:
    """Wrap a layout in a widget, because a widget is easier to remove."""
    made = QWidget()
    made.setLayout(layout)
    return made


def clear_layout(box: QLayout) -> None:
    """Remove all items from a layout and delete them."""
    while (item := box.takeAt(0)) is not None:
        if (inner := item.layout()) is not None:
            clear_layout(inner)
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()


class EmptyState(QWidget):
    """A centered placeholder for missing content, with a title, a sentence and at least one button."""

    def __init__(
        self, title: str, sentence: str, button: QPushButton, *more: QPushButton, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.title, self.sentence = label(title, "section"), paragraph(sentence, "muted")
        self.title.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.sentence.setMaximumWidth(sizes.CHAT_WIDTH // 2 + sizes.XXL)
        middle = row(None, self.sentence, None)
        middle.setStretch(1, 100)  # lets it grow to its maximum width
        inner = column(None, self.title, middle, gap=sizes.S)
        inner.addSpacing(sizes.S)
        inner.addLayout(row(None, button, *more, None))
        inner.addStretch(1)
        self.setLayout(inner)
