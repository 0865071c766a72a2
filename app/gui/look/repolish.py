"""Puts another style sheet on widgets that are there: on what is seen at once, on the rest little by little.

Qt polishes each widget once for every widget above it when the sheet of the application is another, hidden
ones too: half a second with all pages made. Here each is polished once.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

AT_ONCE = 80  # widgets between two events: some milliseconds
POLISHED = Qt.WidgetAttribute.WA_WState_Polished


class Repolish(QObject):
    """One for each look of the application."""

    resized = Signal()  # all have another size of text, also those that were not seen

    def __init__(self, app: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        self._app = app
        self._fresh: set[QWidget] = set()  # have the look of now, while others wait for it
        self._waiting: list[QWidget] | None = None  # None: nobody has listed them yet
        self._is_resized = False
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._go_on)

    def apply(self, sheet: str, palette: QPalette, *, is_resized: bool) -> None:
        """Another look. Where sizes are others too, each widget is told, and asked anew how large it would be."""
        self._is_resized = is_resized or (self._is_resized and self._timer.isActive())
        # At first Qt itself dresses what is there, mostly nothing.
        is_first = not self._app.styleSheet()
        if not is_first:
            self._app.style().unpolish(self._app)  # it forgets the rules, and what to polish anew
        self._app.setStyleSheet(sheet)
        self._app.setPalette(palette)  # a style sheet resets part of it
        self._fresh.clear()
        self._waiting = None
        if is_first:
            return
        self._timer.start()
        for window in _unswept(self._app.topLevelWidgets):
            self._polish_seen(window)

    def finish(self, page: QWidget) -> None:
        """What is seen of a page that came to the front, before it is painted."""
        if self._timer.isActive():
            self._polish_seen(page)
            if self._is_resized:
                self.resized.emit()

    def _polish_seen(self, widget: QWidget) -> None:
        """It and what is inside: where one is not seen, nothing inside it is.

        Not by `findChildren`: PySide ties what that finds to the widget, and keeps it as long, with all that has gone.
        """
        if not widget.isVisible():
            return
        if not self._is_resized and widget.visibleRegion().isEmpty():
            return  # where it is scrolled away its size still counts
        if widget not in self._fresh and widget.testAttribute(POLISHED):
            self._polish(widget)
            self._fresh.add(widget)
        for one in widget.children():
            if isinstance(one, QWidget) and not one.isWindow():
                self._polish_seen(one)

    def _go_on(self) -> None:
        """The next ones, seen or not. To list them takes as long as to polish some."""
        if self._waiting is None:
            self._waiting = [one for one in self._polished() if one not in self._fresh]
            return
        now, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        for widget in now:
            if isValid(widget) and widget not in self._fresh:
                self._polish(widget)
        if not self._waiting:
            self._timer.stop()
            self._fresh.clear()
            if self._is_resized:
                self.resized.emit()

    def _polished(self) -> list[QWidget]:
        return [one for one in _unswept(self._app.allWidgets) if one.testAttribute(POLISHED)]

    def _polish(self, widget: QWidget) -> None:
        widget.style().polish(widget)
        if self._is_resized:
            QCoreApplication.sendEvent(widget, QEvent(QEvent.Type.StyleChange))


def _unswept(listing: Callable[[], list[QWidget]]) -> list[QWidget]:
    """PySide makes an object for each pointer of Qt's list: a sweep between two of them may take a closed window's
    widgets whose turn is still to come, and the program ends."""
    before = gc.isenabled()
    gc.disable()
    try:
        return listing()
    finally:
        if before:
            gc.enable()
