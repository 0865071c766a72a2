"""The row of a rule, and controls that report a value once the user has stopped changing it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QSlider, QSpinBox, QWidget

from app.gui.look import sizes
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import column


class RuleRow(QWidget):
    """A row for a rule: its title above the current reading, its value, and its switch."""

    def __init__(self, title: str, *controls: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = label(title)
        self.title.setWordWrap(True)
        self.reading = paragraph("", "caption")
        texts = QWidget()
        texts.setLayout(column(self.title, self.reading, gap=0))
        self.setLayout(Beside(texts, *controls, gap=sizes.M))

    def say(self, reading: str) -> None:
        """Set the line below the title."""
        self.reading.setText(reading)
        show_if(self.reading, bool(reading))


SETTLED_MS = 500
NUMBER_WIDTH = 5 * sizes.XXL  # same for all


class Number(QSpinBox):
    """A number field with a unit. `chosen(value)` is called once the user has settled on a value."""

    def __init__(
        self,
        name: str,
        unit: str,
        bounds: tuple[int, int],
        chosen: Callable[[int], object],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._chosen = chosen
        self.setAccessibleName(name)
        self.lineEdit().setAccessibleName(name)
        self.setSuffix(f" {unit}" if unit else "")
        self.setRange(*bounds)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setMinimumWidth(NUMBER_WIDTH)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # so that the wheel scrolls the page
        self._timer = _timer(self, self._report)
        self.valueChanged.connect(lambda _: self._timer.start())
        self.editingFinished.connect(self._end)

    def show_value(self, value: int) -> None:
        """Show the current value, unless the user is changing it."""
        if not self._timer.isActive() and value != self.value():
            self.blockSignals(True)
            self.setValue(value)
            self.blockSignals(False)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802  Qt's name
        event.ignore()

    def _end(self) -> None:
        if self._timer.isActive():
            self._timer.stop()
            self._report()

    def _report(self) -> None:
        self._chosen(self.value())


class Slide(QSlider):
    """A slider. `moved(value)` is called while it moves, and `chosen(value)` once the user has settled on a value."""

    def __init__(
        self, name: str, moved: Callable[[int], object], chosen: Callable[[int], object], parent: QWidget | None = None
    ) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setMinimum(1)
        self._moved, self._chosen = moved, chosen
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumHeight(sizes.XL)  # the height of its handle
        self._timer = _timer(self, self._report)
        self.valueChanged.connect(self._changed)

    @property
    def is_moving(self) -> bool:
        """True while the user is moving the slider."""
        return self._timer.isActive() or self.isSliderDown()

    def show_value(self, value: int, most: int) -> None:
        """Show the current value, unless the user is changing it."""
        if self.is_moving:
            return
        self.blockSignals(True)
        self.setMaximum(most)
        self.setValue(value)
        self.blockSignals(False)
        self._moved(self.value())

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802  Qt's name
        event.ignore()

    def _changed(self, value: int) -> None:
        self._moved(value)
        self._timer.start()

    def _report(self) -> None:
        if self.isSliderDown():
            self._timer.start()  # the user still holds it
        else:
            self._chosen(self.value())


def _timer(parent: QWidget, ends: Callable[[], None]) -> QTimer:
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.setInterval(SETTLED_MS)
    timer.timeout.connect(ends)
    return timer
