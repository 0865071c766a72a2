"""Scrolled views inside a card: the card's own surface shows through."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize
from PySide6.QtWidgets import QStyle, QWidget

from app.gui.look.theme import set_role
from app.gui.widgets.scroll_area import ScrollArea


class Inside(ScrollArea):
    """Scrolls up and down. `want` says how high it would like to be."""

    def __init__(self, content: QWidget) -> None:
        super().__init__(content)
        self._wanted = 0
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

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        """So wide that the bar covers nothing: across nobody can scroll."""
        content, least = self.widget(), super().minimumSizeHint()
        if content is None:
            return least
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        return QSize(max(least.width(), content.minimumSizeHint().width() + bar), least.height())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)
