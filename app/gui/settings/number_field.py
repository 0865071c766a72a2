"""Fields for settings: a list and a number. The wheel scrolls the page instead of changing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QDoubleSpinBox

from app.gui.widgets.fields import DropDown

LEAST_LETTERS = 16


class Choice(DropDown):
    """A list to choose a value from; `chosen(value)` is called for a person's choice, not for `show_value`."""

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
    """A number in a range; `chosen(value)` is called when it is typed or stepped, not for `show_value`."""

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
        """Show a value, unless a person is typing."""
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
