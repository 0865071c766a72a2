"""A row that offers to start the node anew."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame

from app.gui import theme as sizes
from app.gui.parts.beside import Beside
from app.gui.parts.buttons import button
from app.gui.parts.text import paragraph
from app.gui.restart import restart
from app.gui.services import Services
from app.gui.theme import set_role


class RestartRow(QFrame):
    """Says that something waits for a new start, and offers it."""

    def __init__(self, services: Services, sentence: str) -> None:
        super().__init__()
        set_role(self, "notice")
        again = button(self.tr("Restart it now"), lambda: restart(services))
        box = Beside(paragraph(sentence), again)
        box.setContentsMargins(sizes.M, sizes.S, sizes.S, sizes.S)
        self.setLayout(box)
        self.hide()
