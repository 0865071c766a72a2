"""Asks for a name: of a new folder, of a preset."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QLineEdit, QWidget

from app.gui.look.theme import Theme
from app.gui.widgets.buttons import button
from app.gui.widgets.dialog import Compact
from app.gui.widgets.labels import label

WIDTH = 380
MOST_NAME = 200  # characters


class NameDialog(Compact):
    """`then` is told the name. Without one there is nothing to press but Cancel."""

    def __init__(self, theme: Theme, title: str, asks: str, then: Callable[[str], None], parent: QWidget) -> None:
        super().__init__(theme, title, "", parent)
        self._then = then
        self.name = QLineEdit()
        self.name.setMaxLength(MOST_NAME)
        self.name.setAccessibleName(asks)
        self.act = button(self.tr("Save"), self.accept, "primary")
        self.act.setEnabled(False)
        self.name.textChanged.connect(lambda text: self.act.setEnabled(bool(text.strip())))
        self.name.returnPressed.connect(self.act.click)
        asked = label(asks)
        asked.setBuddy(self.name)
        self.add(asked, self.name)
        self.offer(self.tr("Cancel"), self.act)
        self.be_wide(theme.px(WIDTH))

    def accept(self) -> None:
        super().accept()
        self._then(self.name.text().strip())
