"""The switch "Look for updates once a day", for the first run: only where this copy names a place to ask."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QWidget

from app.gui.api.node_client import Json
from app.gui.app.app_context import AppContext
from app.gui.look import theme as sizes
from app.gui.look.theme import set_role
from app.gui.models.node_calls import Calls
from app.gui.this_computer.switch import Switch
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column


class DailyCheck(QFrame):
    """A card of its own; hidden until the node says whom it would ask."""

    def __init__(self, services: AppContext) -> None:
        super().__init__()
        set_role(self, "card")
        self._client, self._pool, self._calls = services.client, services.pool, Calls()
        title = self.tr("Look for updates once a day")
        self.switch = Switch(services.theme, title, self._choose)
        self.words = paragraph("", "caption")
        heading, texts = label(title), QWidget()
        heading.setWordWrap(True)
        texts.setLayout(column(heading, self.words, gap=0))
        box = Beside(texts, self.switch, gap=sizes.L)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        self.hide()

    def look(self) -> None:
        """Ask the node, where it is there."""
        if self._pool.is_there:
            self._calls.keep("ask", self._client.get("/updates", self.tell))

    def end(self) -> None:
        """Hear nothing more of it."""
        self._calls.end_all()

    def tell(self, told: Json) -> None:
        """See app/node/downloads/updates.py."""
        place = told["place"]
        self.setVisible(place is not None)
        if place is not None:
            words = self.tr("Asks {place} for the newest version; nothing is downloaded.")
            self.words.setText(words.format(place=place))
            self.switch.setAccessibleDescription(self.words.text())
            self.switch.show_on(told["daily"])

    def _choose(self, on: bool) -> None:
        chosen = {"look_for_updates": on}
        self._calls.keep("choose", self._client.post("/settings", chosen, self._chosen))

    def _chosen(self, told: Json) -> None:
        self.switch.show_on(told["look_for_updates"])
