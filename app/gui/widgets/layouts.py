"""Rows, columns and cards on the grid, in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QHeaderView, QLayout, QTableView, QVBoxLayout, QWidget

from app.gui.look import theme as sizes
from app.gui.look.theme import set_role
from app.gui.widgets.scroll_area import ScrollArea

# Columns as wide as their words, of which one takes what is left; a table too wide for its place scrolls.


class Columns(QObject):
    """Belongs to its table, which has its model. `bar_changed` when the bar at the bottom comes or goes."""

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
        """Of the bar to scroll sideways with, where there is one."""
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
        others = header.length() - header.sectionSize(self._rest)
        least = max(table.sizeHintForColumn(self._rest), header.sectionSizeHint(self._rest))
        left = table.viewport().width() - others
        header.resizeSection(self._rest, max(least, left))
        self._placing = False
        if self._fits != (left >= least):
            self._fits = left >= least
            self._bar_changed()


Item = QWidget | QLayout | None  # None: what takes up the room
B = TypeVar("B", bound=QBoxLayout)


def row(*items: Item, gap: int = sizes.S) -> QHBoxLayout:
    """Side by side."""
    return _filled(QHBoxLayout(), items, gap)


def column(*items: Item, gap: int = sizes.S) -> QVBoxLayout:
    """One under another."""
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
    """A raised surface with its content."""
    frame = QFrame(parent)
    set_role(frame, "card")
    box = column(*items, gap=gap)
    box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
    frame.setLayout(box)
    return frame


def line() -> QFrame:
    """A hairline between two parts."""
    frame = QFrame()
    set_role(frame, "line")
    return frame


def scrolled(content: QWidget) -> ScrollArea:
    """`content` in a view that scrolls up and down."""
    return ScrollArea(content)


def held(layout: QLayout) -> QWidget:
    """A widget with this layout: what may be cleared away again holds layouts of our own so."""
    made = QWidget()
    made.setLayout(layout)
    return made


def clear(box: QLayout) -> None:
    """Remove and delete everything in a layout."""
    while (item := box.takeAt(0)) is not None:
        if (inner := item.layout()) is not None:
            clear(inner)
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
