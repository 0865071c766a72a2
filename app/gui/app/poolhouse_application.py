"""The QApplication of the window: it hears that the system wants it to quit."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QApplication


class Asked(QApplication):
    """Says when the system wants the app to quit, as macOS before a log-out and from the Dock.

    Left to Qt, our windows are closed one by one, hide into the tray instead, and the log-out is broken off.
    """

    to_quit = Signal()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Quit:
            self.to_quit.emit()
            return True
        return super().event(event)
