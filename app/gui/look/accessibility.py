"""Screen reader announcements, and the focus ring of lists."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QKeyEvent, QWindow
from PySide6.QtWidgets import QAbstractItemView, QApplication, QWidget


def announce(widget: QWidget, sentence: str) -> None:
    """Ask screen readers to announce a sentence after the one they are reading."""
    if QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, sentence))


CLICKED = "clicked"  # property for the style sheet: the widget was focused with the pointer
HELD = (Qt.Key.Key_Shift, Qt.Key.Key_Control, Qt.Key.Key_Alt, Qt.Key.Key_Meta)


class FocusRing(QObject):
    """An event filter that shows the focus ring of a list only if the last input came from the keyboard."""

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._by_pointer = False  # whether the pointer was used after the keyboard
        app.focusWindowChanged.connect(self._watch)
        app.focusChanged.connect(lambda _, now: self._tell(now))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() is QEvent.Type.MouseButtonPress:
            self._used(by_pointer=True)
        elif isinstance(event, QKeyEvent) and event.key() not in HELD:
            self._used(by_pointer=False)
        return False

    def _used(self, *, by_pointer: bool) -> None:
        self._by_pointer = by_pointer
        self._tell(QApplication.focusWidget())

    def _watch(self, window: QWindow | None) -> None:
        if window is not None:
            window.installEventFilter(self)

    def _tell(self, widget: QWidget | None) -> None:
        if not isinstance(widget, QAbstractItemView):
            return
        if bool(widget.property(CLICKED)) is not self._by_pointer:
            widget.setProperty(CLICKED, self._by_pointer)
            widget.style().unpolish(widget)
            widget.style().polish(widget)
