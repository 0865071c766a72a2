"""The dialog by which this machine leaves its household; no other machine is asked."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.core.errors import AppError
from app.gui.api.restart import restart
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import paragraph


class LeaveSheet(Sheet):
    """Says what ends and what stays; works while the node is away, too. `done` hears a sentence."""

    needs_node = False

    def __init__(self, services: AppContext, parent: QWidget, done: Callable[[str], object] = lambda _: None) -> None:
        sentence = self.tr(
            "All pairings of this machine end, and it gets a new identity: to come back, or to join "
            "others, it needs a new code."
        )
        super().__init__(services, self.tr("Leave the household"), sentence, parent)
        self._done = done
        self.add(
            paragraph(
                self.tr(
                    "Models, chats and settings stay. The other machines show this one as offline "
                    "until one of them removes it. The background service starts anew, which ends an "
                    "answer under way."
                )
            )
        )
        self.act = button(self.tr("Leave the household"), self.leave, "danger")
        self.offer(self.tr("Cancel"), self.act)

    def leave(self) -> None:
        try:
            self.services.launcher.leave()
        except AppError as error:
            self.fail(error)
            return
        restart(self.services)
        self._done(self.tr("This machine left its household. It is ready again in a few seconds."))
        self.accept()
