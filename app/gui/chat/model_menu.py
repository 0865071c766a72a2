"""The line with the name of a chat's model, and its menu of other models that can answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QStyle, QStyleOptionToolButton

from app.gui.look import sizes
from app.gui.look.drawing import LEFT, draw_icon
from app.gui.look.theme import Theme, set_role
from app.gui.widgets.buttons import ToolButton
from app.gui.widgets.labels import tooltip

EDGE = 2  # room for the focus ring
OPENS = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down)


class ModelLine(ToolButton):
    """A button with the name of the model and an arrow. A long name is elided."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._whole = theme, ""
        set_role(self, "model-line")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        theme.changed.connect(self.update)

    def say(self, text: str) -> None:
        """Replace the text. An empty text means that there is nothing to choose."""
        self._whole = text
        self.setEnabled(bool(text))
        self.setAccessibleName(text)
        self._fit()

    def whole(self) -> str:
        return self._whole

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        metrics = self.fontMetrics()
        wide = metrics.horizontalAdvance(self._whole) + self._side() + sizes.XS + 2 * EDGE
        return QSize(wide, max(self._theme.px(sizes.XL), metrics.height() + 2 * EDGE))

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(0, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        if event.key() not in OPENS:
            super().keyPressEvent(event)
        elif not event.isAutoRepeat():  # nor is it passed on: Down would move the focus away
            self.click()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        if not self._whole:
            return
        painter, option = QPainter(self), QStyleOptionToolButton()
        self.initStyleOption(option)
        painter.setPen(QColor(self._theme.color("muted")))
        room, side = self.rect().adjusted(EDGE, EDGE, -EDGE, -EDGE), self._side()
        painter.drawText(room, LEFT, self.text())
        left = EDGE + self.fontMetrics().horizontalAdvance(self.text()) + sizes.XS
        draw_icon(painter, QRectF(left, (self.height() - side) / 2, side, side), "down", self._theme.color("muted"))
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(self._theme.color("accent")), EDGE))
            ring = QRectF(1, 1, min(self.width(), left + side + EDGE) - 2, self.height() - 2)
            painter.drawRoundedRect(ring, sizes.XS, sizes.XS)

    def _fit(self) -> None:
        room = max(0, self.width() - self._side() - sizes.XS - 2 * EDGE)
        line = " ".join(self._whole.split())
        self.setText(self.fontMetrics().elidedText(line, Qt.TextElideMode.ElideRight, room))
        self.setToolTip(tooltip(self._whole) if self.text() != line else "")
        self.update()

    def _side(self) -> int:
        return self.fontMetrics().ascent()


class ModelMenu(QObject):
    """The menu of a ModelLine.

    names: returns the names of all models that can answer. shown: returns the display name of a model. current: returns
    the name of the model that answers next.
    choose: lets another model answer in the chat. more: opens the Models page.
    """

    def __init__(
        self,
        line: ModelLine,
        names: Callable[[], Sequence[str]],
        shown: Callable[[str], str],
        current: Callable[[], str],
        choose: Callable[[str], object],
        more: Callable[[], object],
    ) -> None:
        super().__init__(line)
        self._line, self._names, self._shown, self._current = line, names, shown, current
        self._choose, self._more = choose, more
        line.clicked.connect(lambda *_: self._open())

    def menu(self) -> QMenu:
        """Return the menu. The model that will answer next is checked."""
        menu, current = QMenu(self._line), self._current()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setAccessibleName(self.tr("Model of this chat"))
        for name in self._names():
            action = menu.addAction(self._shown(name).replace("&", "&&"), self._chooser(name))
            action.setCheckable(True)
            action.setChecked(name == current)
        menu.addSeparator()
        menu.addAction(self.tr("More models…"), self._more)
        return menu

    def _chooser(self, name: str) -> Callable[[], object]:
        return lambda: self._choose(name)

    def _open(self) -> None:
        self.menu().popup(self._line.mapToGlobal(self._line.rect().bottomLeft()))
