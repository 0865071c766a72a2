"""One step of the first run: a title, a sentence, its content, and what Next does with it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import theme as sizes
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column

Then = Callable[[], None]
Failed = Callable[[AppError], None]


class Step(QWidget):
    """Subclasses fill `self.content`. Every step may be left without choosing anything."""

    leave = Signal(str)  # end here, with this page
    judged = Signal()  # `may_go_on` may be another

    def __init__(self, services: AppContext, title: str, sentence: str) -> None:
        super().__init__()
        self.services = services
        self.title = label(title, "title")
        self.sentence = paragraph(sentence, "muted")
        self.content: QVBoxLayout = column(gap=sizes.M)
        box = column(self.title, self.sentence, gap=sizes.S)
        box.addSpacing(sizes.M)
        box.addLayout(self.content)
        box.addStretch(1)
        self.setLayout(box)
        self._call: Call | None = None

    @property
    def next_words(self) -> str:
        """What the primary button says."""
        return self.tr("Next")

    @property
    def may_go_on(self) -> bool:
        """False where what was typed cannot be; the step says why."""
        return True

    @property
    def leads_to(self) -> str:
        """The page after it, where it is the last; "" for the usual one."""
        return ""

    def entered(self) -> None:
        """The step came to the front."""

    def apply(self, then: Then, failed: Failed) -> None:
        """Do what was chosen, then go on; `failed` keeps the person here."""
        then()

    def post(self, path: str, body: dict[str, object], then: Then, failed: Failed) -> None:
        """Ask the node, once at a time."""
        self.cancel()
        self._call = self.services.client.post(path, body, lambda _: then(), failed)

    def cancel(self) -> None:
        """Nothing more is heard of what was asked."""
        if self._call is not None and self._call.running:
            self._call.cancel()
        self._call = None
