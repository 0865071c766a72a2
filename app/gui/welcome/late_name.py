"""A name for this machine that was typed while its node still starts: kept until the node is there."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.gui.app.app_context import Services


class LateName(QObject):
    """Lives with the pool, so that the first steps may be over before the node is there, and their window, too."""

    refused = Signal(object)  # AppError

    def __init__(self, services: Services) -> None:
        super().__init__(services.pool)
        self._services, self._name = services, ""
        services.pool.changed.connect(self._send)

    def want(self, name: str) -> None:
        """The newest counts; "" takes it back."""
        self._name = name

    def _send(self) -> None:
        name, node = self._name, self._services.pool.node
        if name and node:
            self._name = ""
            path = f"/machines/{node['id']}/name"
            self._services.client.post(path, {"name": name}, lambda _: None, self.refused.emit)
