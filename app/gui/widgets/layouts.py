"""Rows, columns and cards on the grid, in one call."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QVBoxLayout,
    QWidget,
)

from app.gui.look import theme as sizes
from app.gui.look.theme import set_role
from app.gui.widgets.scroll_area import ScrollArea

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
