"""The Tab key goes through messages as one reads them, in whatever order their widgets were made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QPoint, Qt, QTimer
from PySide6.QtWidgets import QWidget

SOON_MS = 200  # after the last change


class ReadingOrder(QObject):
    """`begin` stands before the first of what `views` gives."""

    def __init__(self, begin: QWidget, views: Callable[[], Sequence[QWidget]]) -> None:
        super().__init__(begin)
        self._begin, self._views = begin, views
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(SOON_MS)
        self._soon.timeout.connect(self._sort)

    def changed(self) -> None:
        """Widgets came or went."""
        self._soon.start()

    def _sort(self) -> None:
        before = self._begin
        for view in self._views():
            for widget in (view, *_inside(view)):
                QWidget.setTabOrder(before, widget)
                before = widget


def _inside(view: QWidget) -> list[QWidget]:
    """What of a message Tab reaches, line by line."""
    found = [
        widget
        for widget in view.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and not widget.isHidden()
    ]
    places = {widget: widget.mapTo(view, QPoint(0, 0)) for widget in found}
    return sorted(found, key=lambda widget: (places[widget].y(), places[widget].x()))
