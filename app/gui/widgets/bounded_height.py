"""What comes and goes over a page: as high as it needs to be, while the rest of the page still has room."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from app.gui.widgets.layouts import column, held
from app.gui.widgets.scroll_area import ScrollArea

SHARE = 0.25  # of the window's height, at most
LAYOUT = (QEvent.Type.LayoutRequest, QEvent.Type.Resize)
SEEN = (QEvent.Type.ShowToParent, QEvent.Type.HideToParent)


class Bounded(ScrollArea):
    """Hidden while `content` is; scrolls where large text makes that too high."""

    _content: QWidget | None = None  # Qt asks already while this is made

    def __init__(self, content: QWidget) -> None:
        super().__init__(held(column(content)))
        self._content = content
        content.installEventFilter(self)
        self.setVisible(not content.isHidden())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        content = self._content
        if content is not None and watched is content and event.type() in SEEN:
            self.setVisible(not content.isHidden())
        if event.type() in LAYOUT:
            self._bound()
        return super().eventFilter(watched, event)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        self.window().installEventFilter(self)
        self._bound()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._bound()

    def _bound(self) -> None:
        box = self._content.layout() if self._content is not None else None
        if box is not None and self.isVisible():
            most = round(SHARE * self.window().height())
            self.setFixedHeight(min(box.totalHeightForWidth(self.width()), most))
