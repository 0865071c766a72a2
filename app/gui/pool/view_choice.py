"""The switch between map and table."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QButtonGroup, QToolButton, QWidget

from app.gui.look import theme as sizes
from app.gui.look.icons import icon
from app.gui.look.theme import Theme, set_role
from app.gui.widgets.buttons import ToolButton
from app.gui.widgets.layouts import row

MAP, TABLE = "map", "table"


class ViewChoice(QWidget):
    """Two buttons of which one is pressed; `chosen(name)` is called."""

    def __init__(self, theme: Theme, chosen: Callable[[str], object]) -> None:
        super().__init__()
        self._theme = theme
        self._group = QButtonGroup(self)
        self.buttons: dict[str, QToolButton] = {}
        box = row(gap=sizes.XS)
        for name, words in ((MAP, self.tr("Map")), (TABLE, self.tr("Table"))):
            made = ToolButton()
            made.setText(f"\N{EN SPACE}{words}")  # air between picture and word
            made.setAccessibleName(words)
            made.setCheckable(True)
            made.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            made.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            set_role(made, "choice")
            made.clicked.connect(lambda _=False, name=name: chosen(name))
            self._group.addButton(made)
            self.buttons[name] = made
            box.addWidget(made)
        self.setLayout(box)
        theme.changed.connect(self._paint)
        self._paint()

    def show_chosen(self, name: str) -> None:
        if name in self.buttons:
            self.buttons[name].setChecked(True)

    def _paint(self) -> None:
        side = self._theme.px(sizes.SECTION)
        for name, one in self.buttons.items():
            one.setIcon(icon(name, self._theme.colours.text))
            one.setIconSize(QSize(side, side))
