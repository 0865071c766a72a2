"""Controls that report a value when the user has finished changing it, and the switch for starting at sign-in."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QShowEvent, QWheelEvent
from PySide6.QtWidgets import QSlider, QSpinBox, QWidget

from app.api.computer import Autostart
from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.widgets.buttons import Switch
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import column
from app.gui.widgets.notice import Remark


class RuleRow(QWidget):
    """A row for a rule, with the title and the current reading on the left and controls on the right."""

    def __init__(self, title: str, *controls: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = label(title)
        self.title.setWordWrap(True)
        self.reading = paragraph("", "caption")
        texts = QWidget()
        texts.setLayout(column(self.title, self.reading, gap=0))
        self.setLayout(Beside(texts, *controls, gap=sizes.M))

    def say(self, reading: str) -> None:
        """Set the text below the title."""
        self.reading.setText(reading)
        show_if(self.reading, bool(reading))


SETTLED_MS = 500
NUMBER_WIDTH = 5 * sizes.XXL  # the same for all fields


class DebouncedNumber(QSpinBox):
    """A number field with a unit. It calls `chosen(value)` when the user has stopped changing the value."""

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
        suffix = formats.percent_sign() if unit == "%" else f" {unit}"
        self.setSuffix(suffix if unit else "")
        self.setRange(*bounds)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setMinimumWidth(NUMBER_WIDTH)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # lets the wheel scroll the page
        self._timer = _timer(self, self._report)
        self.valueChanged.connect(lambda _: self._timer.start())
        self.editingFinished.connect(self._end)

    def show_value(self, value: int) -> None:
        """Show a value, unless the user is changing it."""
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


class DebouncedSlider(QSlider):
    """A slider. It calls `moved(value)` while the user moves it, and `chosen(value)` when the movement has stopped."""

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
        """Return whether the user is moving the slider."""
        return self._timer.isActive() or self.isSliderDown()

    def show_value(self, value: int, most: int) -> None:
        """Show a value and the maximum (`most`), unless the user is moving the slider."""
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
            self._timer.start()  # the user is still holding the slider
        else:
            self._chosen(self.value())


def _timer(parent: QWidget, ends: Callable[[], None]) -> QTimer:
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.setInterval(SETTLED_MS)
    timer.timeout.connect(ends)
    return timer


class AutostartSwitch(QWidget):
    """A row with the switch for starting Poolhouse at sign-in."""

    def __init__(self, services: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._client, self._pool = services.client, services.pool
        self._call: Call | None = None
        self._on: bool | None = None  # as last reported by the system
        title = self.tr("Start at sign-in")
        self.switch = Switch(services.theme, title, self._choose)
        self.switch.setEnabled(False)
        self.words = Remark(services.theme, services.go, self._usual(), "caption")
        self.switch.setAccessibleDescription(self._usual())
        heading = label(title)
        heading.setWordWrap(True)
        texts = QWidget()
        texts.setLayout(column(heading, self.words, gap=0))
        self.setLayout(Beside(texts, self.switch, gap=sizes.L))
        services.pool.link_changed.connect(self._link_changed)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        self.refresh()

    def refresh(self) -> None:
        """Request the state again, because it may have been changed in the operating system.

        If the node is unavailable, the request is sent later.
        """
        if not self._pool.is_there:
            return
        self._ask(self._client.get("/autostart", self._take, self._fail, answer=Autostart))

    def _usual(self) -> str:
        return self.tr("Poolhouse starts in the tray, without opening its window.")

    def _link_changed(self) -> None:
        if self.isVisible() and self._on is None:
            self.refresh()

    def _choose(self, on: bool) -> None:
        self._ask(self._client.post("/autostart", {"on": on}, self._take, self._fail, answer=Autostart))

    def _ask(self, call: Call | None) -> None:
        if self._call is not None:
            self._call.cancel()
        self._call = call

    def _take(self, answer: Autostart) -> None:
        self._call, self._on = None, answer.on
        self.words.setToolTip(answer.where)
        self._show()
        self.words.say(self._usual(), "caption")

    def _fail(self, error: AppError) -> None:
        self._call = None
        self._show()
        self.words.fail(error)

    def _show(self) -> None:
        self.switch.show_on(bool(self._on))
        self.switch.setEnabled(self._on is not None)
