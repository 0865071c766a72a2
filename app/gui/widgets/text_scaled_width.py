"""Widths that grow with the text, also when its size is changed while the widget is there."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.gui.look.theme import Theme


class _Width(QObject):
    """Belongs to its widget, and ends with it."""

    def __init__(self, widget: QWidget, theme: Theme, size: int, *, fixed: bool) -> None:
        super().__init__(widget)
        self._widget, self._theme, self._size, self._fixed = widget, theme, size, fixed
        theme.changed.connect(self._set)
        self._set()

    def _set(self) -> None:
        wide = self._theme.px(self._size)
        if self._fixed:
            self._widget.setFixedWidth(wide)
        else:
            self._widget.setMaximumWidth(wide)


def keep_width(theme: Theme, widget: QWidget, size: int) -> None:
    """So wide at 100 % text, and in proportion at any other."""
    _Width(widget, theme, size, fixed=True)


def bound_width(theme: Theme, widget: QWidget, size: int) -> None:
    """At most so wide at 100 % text."""
    _Width(widget, theme, size, fixed=False)
