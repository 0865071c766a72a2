"""A list of which one is chosen, bound to values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent

from app.gui.widgets.drop_down import DropDown

LEAST_LETTERS = 16


class Choice(DropDown):
    """`chosen(value)` is called when a person picked another, not when `show_value` did."""

    def __init__(self, options: Sequence[tuple[str, str]], chosen: Callable[[str], object]) -> None:
        super().__init__()
        for value, words in options:
            self.addItem(words, value)
        self.setMinimumContentsLength(LEAST_LETTERS)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.activated.connect(lambda _: chosen(self.value))

    @property
    def value(self) -> str:
        return str(self.currentData())

    def show_value(self, value: str) -> None:
        self.setCurrentIndex(max(0, self.findData(value)))

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802  Qt's name
        """Scrolling the page must not change a setting under the pointer."""
        event.ignore()
