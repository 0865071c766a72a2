"""Asks for a name: of a new folder, of a preset."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QLineEdit, QWidget

from app.gui import theme as sizes
from app.gui.parts.buttons import button
from app.gui.parts.layouts import column, row
from app.gui.parts.text import label
from app.gui.theme import Theme, set_role

WIDTH = 380
MOST_NAME = 200  # characters


class NameDialog(QDialog):
    """`then` is told the name. Without one there is nothing to press but Cancel."""

    def __init__(
        self, theme: Theme, title: str, asks: str, then: Callable[[str], None], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(True)
        self.setWindowTitle(title)
        set_role(self, "page")
        self._then = then
        self.name = QLineEdit()
        self.name.setMaxLength(MOST_NAME)
        self.name.setAccessibleName(asks)
        cancel = button(self.tr("Cancel"), self.reject)
        self.act = button(self.tr("Save"), self.accept, "primary")
        self.act.setEnabled(False)
        self.name.textChanged.connect(lambda text: self.act.setEnabled(bool(text.strip())))
        self.name.returnPressed.connect(self.act.click)
        asked = label(asks)
        asked.setBuddy(self.name)
        box = column(label(title, "section"), asked, self.name, gap=sizes.S)
        box.addSpacing(sizes.S)
        box.addLayout(row(None, cancel, self.act))
        box.setContentsMargins(sizes.XL, sizes.L, sizes.XL, sizes.L)
        self.setLayout(box)
        self.setFixedWidth(min(theme.px(WIDTH), parent.window().width()))

    def accept(self) -> None:
        super().accept()
        self._then(self.name.text().strip())
