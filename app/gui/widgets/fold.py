"""A heading that expands and collapses the content below it."""

from __future__ import annotations

from PySide6.QtCore import QEasingCurve, QEvent, QSize, Qt, QVariantAnimation
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.gui.look import sizes
from app.gui.look.drawing import icon
from app.gui.look.motion import may_move
from app.gui.look.theme import HOVER_MS, Theme
from app.gui.widgets.buttons import ToolButton
from app.gui.widgets.layouts import column


class RevealingContainer(QWidget):
    """A container that reveals its content from top to bottom. The content keeps its full size during the animation."""

    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self._content = content
        content.setParent(self)
        self._part = 0.0
        self._moves = QVariantAnimation(self)
        self._moves.setDuration(HOVER_MS)
        self._moves.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._moves.valueChanged.connect(self._show_part)
        self._moves.finished.connect(self._arrived)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.hide()

    def set_expanded(self, on: bool) -> None:
        """Expand or collapse the content."""
        if on:
            self.show()
        self._moves.stop()
        self._moves.setStartValue(self._part)
        self._moves.setEndValue(float(on))
        self._moves.start()
        if not may_move():
            self._moves.setCurrentTime(HOVER_MS)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        width = self._content.sizeHint().width()
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(self._content.minimumSizeHint().width(), 0)

    def hasHeightForWidth(self) -> bool:  # noqa: N802  Qt's name
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: N802  Qt's name
        return round(self._part * self._whole(width))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._content.resize(self.width(), self._whole(self.width()))

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # the size of the content has changed
            self._content.resize(self.width(), self._whole(self.width()))
            self.updateGeometry()
        return super().event(event)

    def _whole(self, width: int) -> int:
        inner = self._content
        if inner.hasHeightForWidth():
            return inner.heightForWidth(width)
        return inner.sizeHint().height()

    def _show_part(self, part: float) -> None:
        self._part = part
        self.updateGeometry()

    def _arrived(self) -> None:
        self.setVisible(self._part > 0)


class Fold(QWidget):
    """A heading that shows or hides the content below it when clicked. The content is hidden initially."""

    def __init__(self, theme: Theme, title: str, content: QWidget) -> None:
        super().__init__()
        self._theme, self._content = theme, RevealingContainer(content)
        self.button = ToolButton()
        self.button.setCheckable(True)
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.rename(title)
        self.button.toggled.connect(self._turn)
        self.setLayout(column(self.button, self._content, gap=sizes.S))
        theme.changed.connect(self._paint)
        self._paint()

    def rename(self, title: str) -> None:
        self.button.setText(title)
        self.button.setAccessibleName(title)

    def open(self, on: bool = True) -> None:
        self.button.setChecked(on)

    def _turn(self, on: bool) -> None:
        self._content.set_expanded(on)
        self._paint()

    def _paint(self) -> None:
        side = self._theme.px(sizes.SECTION)
        picture = "down" if self.button.isChecked() else "right"
        self.button.setIcon(icon(picture, self._theme.colors.text))
        self.button.setIconSize(QSize(side, side))
