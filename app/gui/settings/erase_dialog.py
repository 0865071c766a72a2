"""The dialog that deletes all of Poolhouse's data on this computer, and quits."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtWidgets import QCheckBox, QWidget

from app.gui.api.node_client import Json
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.look import formats
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import paragraph

LATE_MS = 3000  # a node that does not answer: whoever deletes waits for its end


class EraseSheet(Sheet):
    """Nothing happens before the window and its node have ended; `end` ends the window."""

    needs_node = False

    def __init__(
        self, services: AppContext, parent: QWidget, end: Callable[[], object] = QCoreApplication.exit
    ) -> None:
        sentence = self.tr(
            "Models, chats, settings, keys and the pairings of this computer are deleted, and "
            "Poolhouse quits. Nothing brings them back: export chats that you want to keep first."
        )
        super().__init__(services, self.tr("Remove all data"), sentence, parent)
        self._end_window, self._has_ended = end, False
        models = services.pool.snapshot.get("models_folder") or {}
        places = [str(services.launcher.home)]
        if not models.get("default", True):  # of that one only our models go
            places.append(str(models["folder"]))
        self.folder = paragraph("\n".join(places), "caption")
        stays = self.tr(
            "Files of other programs stay where they are, also models that were used in place. The other "
            "machines show this one as offline until one of them removes it."
        )
        self.sure = QCheckBox(self.tr("Yes, delete everything"))
        self.add(self.folder, paragraph(stays), self.sure)
        self.act = button(self.tr("Delete everything"), self.erase, "danger")
        self.act.setEnabled(False)
        self.sure.toggled.connect(self.act.setEnabled)
        self.offer(self.tr("Cancel"), self.act)
        self.keep(services.client.get("/settings", self._tell_size))

    def erase(self) -> None:
        """Ends the node, then the window; what ended both then deletes."""
        services = self.services
        services.launcher.erase_at_end()
        services.client.endpoint = services.client.endpoint or services.launcher.find()
        services.client.post("/shutdown", None, lambda _: self._over(), lambda _: self._over())
        services.pool.stop()  # which would start another one
        QTimer.singleShot(LATE_MS, self, self._over)
        self.act.setEnabled(False)

    def _over(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._end_window()

    def _tell_size(self, told: Json) -> None:
        n_bytes = sum(int(folder["bytes"]) for folder in told["folders"])
        self.act.setText(self.tr("Delete everything, {size}").format(size=formats.size(n_bytes)))
