"""The wheel over a box scrolls the page below it, until somebody is at the box."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QWidget


class _Wheel(QObject):
    """Belongs to its box."""

    def __init__(self, box: QWidget) -> None:
        super().__init__(box)
        self._box = box
        box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the wheel gives it no focus
        box.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() == QEvent.Type.Wheel and not self._box.hasFocus():
            event.ignore()  # so it goes on to what is below
            return True
        return super().eventFilter(watched, event)


def wheel_scrolls_page(box: QWidget) -> None:
    """For boxes and sliders on a page that scrolls: nothing changes under the pointer by itself."""
    _Wheel(box)
