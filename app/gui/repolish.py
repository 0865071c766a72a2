"""Puts another style sheet on widgets that are there: on what is seen at once, on the rest little by little.

Qt polishes each widget once for every widget above it when the sheet of the application is another, hidden
ones too: half a second with all pages made. Here each is polished once.
"""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

AT_ONCE = 80  # widgets between two events: some milliseconds
POLISHED = Qt.WidgetAttribute.WA_WState_Polished


class Repolish(QObject):
    """One for each look of the application."""

    def __init__(self, app: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        self._app = app
        self._waiting: list[QWidget] = []
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._go_on)

    def apply(self, sheet: str, palette: QPalette, *, is_resized: bool) -> None:
        """Another look. Where sizes are others too, all at once: they are asked for the next moment."""
        if self._app.styleSheet():
            self._app.style().unpolish(self._app)  # it forgets the rules, and what to polish anew
        self._app.setStyleSheet(sheet)
        self._app.setPalette(palette)  # a style sheet resets part of it
        there = [one for one in self._app.allWidgets() if one.testAttribute(POLISHED)]
        self._waiting = [] if is_resized else there
        if is_resized:
            for widget in there:
                self._polish(widget)
                QCoreApplication.sendEvent(widget, QEvent(QEvent.Type.StyleChange))
            return
        self._polish_waiting({one for one in there if _is_seen(one)})

    def finish(self, page: QWidget) -> None:
        """What is seen of a page that came to the front, before it is painted.

        Not by `page.findChildren`: PySide ties what it finds to the page, and keeps it as long as the page, with
        all that has long gone.
        """
        self._waiting = [one for one in self._waiting if isValid(one)]
        if self._waiting:
            inside = (one for one in self._waiting if one is page or page.isAncestorOf(one))
            self._polish_waiting({one for one in inside if _is_seen(one)})

    def _polish_waiting(self, first: set[QWidget]) -> None:
        for widget in self._waiting:
            if widget in first:
                self._polish(widget)
        self._waiting = [one for one in self._waiting if one not in first]
        if self._waiting:
            self._timer.start()

    def _go_on(self) -> None:
        """The next ones, seen or not."""
        now, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        for widget in now:
            if isValid(widget):
                self._polish(widget)
        if not self._waiting:
            self._timer.stop()

    def _polish(self, widget: QWidget) -> None:
        widget.style().polish(widget)


def _is_seen(widget: QWidget) -> bool:
    return widget.isVisible() and not widget.visibleRegion().isEmpty()
