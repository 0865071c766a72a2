"""The Escape key in a field, where the page around it has a use for it too."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

# The wheel over a box scrolls the page below it, until somebody is at the box.


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


class Escape(QObject):
    """`act` when it is pressed in `field` while that is `wanted`; else it is the page's."""

    def __init__(self, field: QWidget, act: Callable[[], object], wanted: Callable[[], bool] = lambda: True) -> None:
        super().__init__(field)
        self._act, self._wanted = act, wanted
        field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        pressed = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
        if not pressed or not self._wanted():
            return super().eventFilter(watched, event)
        if event.type() is QEvent.Type.ShortcutOverride:
            event.accept()
        elif event.type() is QEvent.Type.KeyPress:
            self._act()
        return True
