"""Asks before Quit ends what a person still waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QWidget

from app.gui.app.app_context import Services
from app.gui.pool.dialogs.node_dialog import Sheet
from app.gui.widgets.buttons import button


class QuitSheet(Sheet):
    """`where`: the pages on which something is under way. `leave` quits."""

    needs_node = False

    def __init__(
        self, services: Services, where: Sequence[str], leave: Callable[[], object], parent: QWidget
    ) -> None:
        words = self.tr(
            "Something is under way on: {pages}. It ends when you quit; what came of an answer is kept. "
            "Downloads, and files that are taken in, go on at the next start."
        )
        sentence = words.format(pages=", ".join(where))
        super().__init__(services, self.tr("Quit now?"), sentence, parent)
        self.leave = button(self.tr("Quit and end it"), leave)
        self.stay = self.offer(self.tr("Go on"), self.leave)
        self.stay.setFocus()
