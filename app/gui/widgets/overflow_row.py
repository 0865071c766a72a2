"""A row of buttons that never wraps. Buttons that do not fit move to a menu at its end."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMenu, QPushButton, QSizePolicy, QWidget

from app.gui.look import sizes
from app.gui.widgets.buttons import button

translate = QCoreApplication.translate


class OverflowRow(QWidget):
    """A row of buttons in order of importance. Buttons from index `far_from` on are placed at the far end."""

    def __init__(self) -> None:
        super().__init__()
        self._buttons: tuple[QPushButton, ...] = ()
        self._far_from = 0
        self._menu = QMenu(self)
        self.more = button(translate("Buttons", "More"), self._open_menu)
        self.more.setParent(self)
        self.more.hide()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_buttons(self, buttons: Sequence[QPushButton], far_from: int) -> None:
        """Replace the current buttons, which are deleted, with these."""
        for old in self._buttons:
            old.hide()
            old.deleteLater()
        self._buttons, self._far_from = tuple(buttons), far_from
        for made in self._buttons:
            made.setParent(self)
        self.updateGeometry()
        self._arrange()

    @property
    def overflowing(self) -> list[QPushButton]:
        """The buttons that are in the menu."""
        return [made for made in self._buttons if made.isHidden()]

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        widths = [made.sizeHint().width() for made in self._buttons]
        gaps = sizes.S * max(0, len(widths) - 1)
        return QSize(sum(widths) + gaps, self._height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        if not self._buttons:
            return QSize(0, 0)
        first = self._buttons[0].sizeHint().width()
        rest = sizes.S + self.more.sizeHint().width() if len(self._buttons) > 1 else 0
        return QSize(first + rest, self._height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._arrange()

    def _height(self) -> int:
        return max((made.sizeHint().height() for made in self._buttons), default=0)

    def _arrange(self) -> None:
        """Place the buttons that fit, and move the others to the menu. The first one is always placed."""
        shown = self._shown()
        height, left, right = self._height(), 0, self.width()
        near = shown[: self._far_from]
        for made in near:
            made.setGeometry(left, 0, min(made.sizeHint().width(), self.width()), height)
            left += made.width() + sizes.S
        for made in reversed(shown[self._far_from :]):
            width = made.sizeHint().width()
            made.setGeometry(right - width, 0, width, height)
            right -= width + sizes.S
        for made in self._buttons:
            made.setVisible(made in shown)
        is_more = len(shown) < len(self._buttons)
        self.more.setVisible(is_more)
        if is_more:
            self.more.setGeometry(left, 0, self.more.sizeHint().width(), height)

    def _shown(self) -> list[QPushButton]:
        if self.sizeHint().width() <= self.width():
            return list(self._buttons)
        room = self.width() - self.more.sizeHint().width()
        shown: list[QPushButton] = []
        for made in self._buttons:
            room -= made.sizeHint().width() + sizes.S
            if shown and room < 0:
                break
            shown.append(made)
        return shown

    def _open_menu(self) -> None:
        self._menu.clear()
        for made in self.overflowing:
            action = self._menu.addAction(made.text(), made.click)
            action.setEnabled(made.isEnabled())
        self._menu.popup(self.more.mapToGlobal(self.more.rect().bottomLeft()))
