"""The calls of one object to the node: a new call of a name ends the one before; all end with their owner."""

from __future__ import annotations

from app.gui.api.node_client import Call


class Calls:
    """The calls in progress by name; a call that was ended reports nothing more."""

    def __init__(self) -> None:
        self._running: dict[str, Call] = {}

    def keep(self, name: str, call: Call | None) -> None:
        """Keep a call, and end the one before of the same name."""
        self.end(name)
        if call is not None:
            self._running[name] = call

    def done(self, name: str) -> None:
        """Forget a call that ended by itself."""
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
