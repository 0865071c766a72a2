"""Calls of one object to the node: a new one of a name ends the one before; all end with their owner."""

from __future__ import annotations

from app.gui.api.node_client import Call


class Calls:
    """Nothing is heard any more of a call that was ended."""

    def __init__(self) -> None:
        self._running: dict[str, Call] = {}

    def keep(self, name: str, call: Call | None) -> None:
        """`call` is the one of this name now."""
        self.end(name)
        if call is not None:
            self._running[name] = call

    def done(self, name: str) -> None:
        """It ended by itself."""
        self._running.pop(name, None)

    def running(self, name: str) -> bool:
        return name in self._running

    def end(self, name: str) -> None:
        """Stop it, if it runs."""
        call = self._running.pop(name, None)
        if call is not None and call.running:
            call.cancel()

    def end_all(self) -> None:
        for name in list(self._running):
            self.end(name)
