"""The line with the model of a chat, and the menu that it opens: the models that can answer instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QRectF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QMenu

from app.gui.look import sizes
from app.gui.look.drawing import draw_icon
from app.gui.look.sentences import model_name
from app.gui.look.theme import Theme
from app.gui.widgets.labels import ElidedLabel


class ModelLine(ElidedLabel):
    """The name of the model, with an arrow after it. A click opens the menu; by keyboard, the chat's settings do."""

    clicked = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__("", "caption")
        self._theme = theme
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802  Qt's name
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.clicked.emit()

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802  Qt's name
        event.accept()  # else the release would go to the parent

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        super().paintEvent(event)
        if not self.text():
            return
        side = self._side()
        left = self.fontMetrics().horizontalAdvance(self.text()) + sizes.XS
        box = QRectF(left, (self.height() - side) / 2, side, side)
        draw_icon(QPainter(self), box, "down", self._theme.color("muted"))

    def _room(self) -> int:
        return max(0, super()._room() - self._side() - sizes.XS)

    def _side(self) -> int:
        return self.fontMetrics().ascent()


class ModelMenu(QObject):
    """The menu of a ModelLine.

    names: returns the names of all models that can answer. current: returns the name of the one that answers next.
    choose: lets another model answer in the chat. more: opens the Models page.
    """

    def __init__(
        self,
        line: ModelLine,
        names: Callable[[], Sequence[str]],
        current: Callable[[], str],
        choose: Callable[[str], object],
        more: Callable[[], object],
    ) -> None:
        super().__init__(line)
        self._line, self._names, self._current = line, names, current
        self._choose, self._more = choose, more
        line.clicked.connect(self._open)

    def menu(self) -> QMenu:
        """Return the menu, in which the model that answers next is checked."""
        menu, current = QMenu(self._line), self._current()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setAccessibleName(self.tr("Model of this chat"))
        for name in self._names():
            action = menu.addAction(model_name(name).replace("&", "&&"), self._chooser(name))
            action.setCheckable(True)
            action.setChecked(name == current)
        menu.addSeparator()
        menu.addAction(self.tr("More models…"), self._more)
        return menu

    def _chooser(self, name: str) -> Callable[[], object]:
        return lambda: self._choose(name)

    def _open(self) -> None:
        self.menu().popup(self._line.mapToGlobal(self._line.rect().bottomLeft()))
