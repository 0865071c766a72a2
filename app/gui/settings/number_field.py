"""A number in its range, typed or stepped; the wheel scrolls the page instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QDoubleSpinBox

from app.gui.widgets.fields import DropDown

# A list of which one is chosen, bound to values.

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


class Number(QDoubleSpinBox):
    """`chosen(value)` is called when it was typed or stepped, not when `show_value` set it."""

    def __init__(self, least: float, most: float, digits: int, chosen: Callable[[float], object]) -> None:
        super().__init__()
        self._chosen, self._shown = chosen, least
        self.setDecimals(digits)
        self.setRange(least, most)
        self.setSingleStep(10**-digits * (5 if digits > 1 else 1))
        self.setKeyboardTracking(False)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.valueChanged.connect(self._changed)

    def show_value(self, value: float) -> None:
        """As it is now; not while somebody types."""
        if not self.hasFocus():
            self._shown = value
            self.setValue(value)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802  Qt's name
        """Scrolling the page must not change a setting under the pointer."""
        event.ignore()

    def _changed(self, value: float) -> None:
        if value != self._shown:
            self._shown = value
            self._chosen(value)
