"""The switch "Start at sign-in". It shows the real state of the system, which is read back after each change."""

from __future__ import annotations

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from app.api.computer import Autostart
from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import sizes
from app.gui.widgets.buttons import Switch
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column
from app.gui.widgets.notice import Remark


class AutostartSwitch(QWidget):
    """A row with a title, an explanation and the switch."""

    def __init__(self, services: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._client, self._pool = services.client, services.pool
        self._call: Call | None = None
        self._on: bool | None = None  # as last reported by the system
        title = self.tr("Start at sign-in")
        self.switch = Switch(services.theme, title, self._choose)
        self.switch.setEnabled(False)
        self.words = Remark(services.theme, services.go, self._usual(), "caption")
        self.switch.setAccessibleDescription(self._usual())
        heading = label(title)
        heading.setWordWrap(True)
        texts = QWidget()
        texts.setLayout(column(heading, self.words, gap=0))
        self.setLayout(Beside(texts, self.switch, gap=sizes.L))
        services.pool.link_changed.connect(self._link_changed)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        self.refresh()

    def refresh(self) -> None:
        """Read the state again, because the system may have changed it. Without a node, wait until there is one."""
        if not self._pool.is_there:
            return
        self._ask(self._client.get("/autostart", self._take, self._fail, answer=Autostart))

    def _usual(self) -> str:
        return self.tr("Opens only the tray icon, no window.")

    def _link_changed(self) -> None:
        if self.isVisible() and self._on is None:
            self.refresh()

    def _choose(self, on: bool) -> None:
        self._ask(self._client.post("/autostart", {"on": on}, self._take, self._fail, answer=Autostart))

    def _ask(self, call: Call | None) -> None:
        if self._call is not None:
            self._call.cancel()
        self._call = call

    def _take(self, answer: Autostart) -> None:
        self._call, self._on = None, answer.on
        self.words.setToolTip(answer.where)
        self._show()
        self.words.say(self._usual(), "caption")

    def _fail(self, error: AppError) -> None:
        self._call = None
        self._show()
        self.words.fail(error)

    def _show(self) -> None:
        self.switch.show_on(bool(self._on))
        self.switch.setEnabled(self._on is not None)
