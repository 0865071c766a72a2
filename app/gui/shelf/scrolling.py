"""Scrolled views inside a card: the card's own surface shows through."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QScrollArea, QWidget

from app.gui.theme import set_role


class Inside(QScrollArea):
    """Scrolls up and down. `want` says how high it would like to be."""

    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self._wanted = 0
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(content)
        for widget in (self, content):
            set_role(widget, "inside")
        for widget in (self.viewport(), content):
            widget.setAutoFillBackground(False)

    def want(self, height: int, least: int) -> None:
        """Not more than `height`, and where there is no room for that, `least`."""
        if height != self._wanted:
            self._wanted = height
            self.setMaximumHeight(height)
            self.setMinimumHeight(min(least, height))
            self.updateGeometry()

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        hint = super().sizeHint()
        return QSize(hint.width(), self._wanted) if self._wanted else hint
