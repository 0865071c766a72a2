"""A row that offers to start the node anew."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame

from app.gui.api.restart import restart
from app.gui.app.app_context import Services
from app.gui.look import theme as sizes
from app.gui.look.theme import set_role
from app.gui.widgets.buttons import button
from app.gui.widgets.label_with_control import Beside
from app.gui.widgets.labels import paragraph


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
