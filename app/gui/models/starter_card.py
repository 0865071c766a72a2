"""The card above the list that recommends a model for this household and offers to download and load it."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import QFrame

from app.api.models import Starter
from app.gui.look import formats, sizes
from app.gui.look.theme import set_role
from app.gui.models.model_item import ModelItem
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import ElidedLabel, label, paragraph
from app.gui.widgets.layouts import column

translate = QCoreApplication.translate


class StarterCard(QFrame):
    """The card that recommends a model. It is hidden if there is no recommendation.

    `start_requested(item, file)` and `details_requested(item)` are emitted when the user clicks the buttons.
    """

    start_requested = Signal(object, str)
    details_requested = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        set_role(self, "card")
        self._item: ModelItem | None = None
        self._file = ""
        self.name, self.why = ElidedLabel("", "section"), paragraph("", "muted")
        self.start = button("", self._start, "primary")
        self.details = button(self.tr("Show details"), self._show_details, "link")
        head = label(self.tr("Recommended for your household"), "caption")
        box = column(head, self.name, self.why, gap=sizes.XS)
        box.addSpacing(sizes.XS)
        box.addLayout(Flow(self.start, self.details, gap=sizes.S))
        box.setContentsMargins(sizes.L, sizes.M, sizes.L, sizes.M)
        self.setLayout(box)
        self.hide()

    def show_starter(self, starter: Starter | None, item: ModelItem | None) -> None:
        """Show the recommended model and its catalog entry, or hide the card if either is None."""
        self._item = item if starter is not None else None
        self.setVisible(self._item is not None)
        if starter is None or item is None:
            return
        self._file = starter.file
        self.name.say(item.title)
        self.why.setText(why(starter))
        words = self.tr("Download and load ({size})")
        self.start.setText(words.format(size=formats.size(starter.size_bytes or 0)))

    def _start(self) -> None:
        if self._item is not None:
            self.start_requested.emit(self._item, self._file)

    def _show_details(self) -> None:
        if self._item is not None:
            self.details_requested.emit(self._item)


def why(starter: Starter) -> str:
    """Explain a recommendation with the memory needed, the memory available and, if known, the forecast speed."""
    words = translate("Models", "Needs {needs} of the {lends} that is free for models.").format(
        needs=formats.size(starter.needs_bytes), lends=formats.size(starter.lends_bytes)
    )
    if starter.tok_s:
        speed = translate("Models", "Forecast: {speed}.").format(
            speed=formats.speed_range(starter.tok_s, starter.spread)
        )
    else:
        # also after a measurement, if other programs disturbed it
        speed = translate("Models", "Its speed is not known yet.")
    return f"{words} {speed}"
