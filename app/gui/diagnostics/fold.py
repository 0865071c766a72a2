"""A heading that folds what stands below it away."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from app.gui import theme as sizes
from app.gui.icons import icon
from app.gui.parts.layouts import column
from app.gui.theme import Theme


class Fold(QWidget):
    """Closed at first."""

    def __init__(self, theme: Theme, title: str, content: QWidget) -> None:
        super().__init__()
        self._theme, self._content = theme, content
        self.button = QToolButton()
        self.button.setCheckable(True)
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.rename(title)
        self.button.toggled.connect(self._turn)
        content.hide()
        self.setLayout(column(self.button, content, gap=sizes.S))
        theme.changed.connect(self._paint)
        self._paint()

    def rename(self, title: str) -> None:
        self.button.setText(title)
        self.button.setAccessibleName(title)

    def open(self, on: bool = True) -> None:
        self.button.setChecked(on)

    def _turn(self, on: bool) -> None:
        self._content.setVisible(on)
        self._paint()

    def _paint(self) -> None:
        side = self._theme.px(sizes.SECTION)
        picture = "down" if self.button.isChecked() else "right"
        self.button.setIcon(icon(picture, self._theme.colours.text))
        self.button.setIconSize(QSize(side, side))
