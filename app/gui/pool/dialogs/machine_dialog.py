"""A dialog about one machine, and whom it tells what was done."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.pool.machine_facts import MachineFacts

Said = Callable[[str], object]  # is told what was done, in a sentence


class MachineSheet(Sheet):
    """Subclasses ask; `done` is called when it was done, before the dialog closes."""

    def __init__(
        self, services: AppContext, machine: MachineFacts, done: Said, parent: QWidget, title: str, sentence: str = ""
    ) -> None:
        super().__init__(services, title, sentence, parent)
        self._machine, self._done = machine, done

    def finish(self, sentence: str) -> None:
        """It was done."""
        self._done(sentence)
        self.accept()
