"""What the first steps may offer once the node has answered a question of theirs."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.gui.api.node_client import Call
from app.gui.app.app_context import Services


class Offer(QWidget):
    """Hidden until there is something to offer; where nothing answers, nothing is said. `wanted` when a person asks
    to see it."""

    wanted = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._client = services.client
        self._call: Call | None = None
        self.hide()

    def cancel(self) -> None:
        """Nothing more is heard of it."""
        call, self._call = self._call, None
        if call is not None and call.running:
            call.cancel()

    def _none(self, _: object) -> None:
        self._call = None
