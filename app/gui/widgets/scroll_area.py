"""Vertical scroll areas that give their content exactly the height it needs."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractScrollArea, QScrollArea, QSizePolicy, QStyle, QVBoxLayout, QWidget

from app.gui.look.theme import set_role


class ScrollArea(QScrollArea):
    """A scroll area that scrolls only vertically.

    Qt computes the minimum height of wrapping content at a narrow width, which leaves empty space below it. This
    class ignores that height if the layout's height depends on its width.

    Set the layout of the content after creating the scroll area. Otherwise, Qt measures and polishes the content
    before showing it, which takes half of the time needed to show a page.
    """

    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self._own = content.sizePolicy().verticalPolicy()
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        set_role(self, "page")
        set_role(content, "body")
        self.setWidget(content)

    def event(self, event: QEvent) -> bool:
        """Skip measuring the content on a style change while the area is hidden."""
        if event.type() == QEvent.Type.StyleChange and not self.isVisible():
            return QAbstractScrollArea.event(self, event)
        return super().event(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() == QEvent.Type.LayoutRequest:
            self._follow()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        self._follow()
        super().resizeEvent(event)

    def _follow(self) -> None:
        content = self.widget()
        layout = content.layout() if content is not None else None
        if content is None or layout is None:
            return
        has_height = layout.hasHeightForWidth()
        vertical = QSizePolicy.Policy.Ignored if has_height else self._own
        policy = content.sizePolicy()
        if policy.verticalPolicy() is not vertical:
            policy.setVerticalPolicy(vertical)
            content.setSizePolicy(policy)


SHARE = 0.24  # maximum fraction of the window's height


LAYOUT = (QEvent.Type.LayoutRequest, QEvent.Type.Resize)


SEEN = (QEvent.Type.ShowToParent, QEvent.Type.HideToParent)


class BoundedScrollArea(ScrollArea):
    """A scroll area as tall as its content, up to a fraction of the window's height. It hides when its content does."""

    _content: QWidget | None = None  # Qt sends events during construction already

    def __init__(self, content: QWidget) -> None:
        box = QVBoxLayout()
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(content)
        around = QWidget()
        around.setLayout(box)
        super().__init__(around)
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


class CardScrollArea(ScrollArea):
    """A scroll area with a transparent background for use in cards. `want` sets its preferred height."""

    def __init__(self, content: QWidget) -> None:
        super().__init__(content)
        self._wanted = 0
        for widget in (self, content):
            set_role(widget, "inside")
        for widget in (self.viewport(), content):
            widget.setAutoFillBackground(False)

    def want(self, height: int, least: int) -> None:
        """Prefer `height`, but allow shrinking to `least` if there is not enough space."""
        if height != self._wanted:
            self._wanted = height
            self.setMaximumHeight(height)
            self.setMinimumHeight(min(least, height))
            self.updateGeometry()

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        hint = super().sizeHint()
        return QSize(hint.width(), self._wanted) if self._wanted else hint

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        """Return a size with space for the vertical scroll bar, because the area cannot scroll horizontally."""
        content, least = self.widget(), super().minimumSizeHint()
        if content is None:
            return least
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        return QSize(max(least.width(), content.minimumSizeHint().width() + bar), least.height())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)
