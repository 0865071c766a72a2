"""This machine's lending as the page follows it: state, rules, readings; changes that can be undone."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.errors import AppError
from app.gui.api.node_client import Call, NodeClient
from app.gui.api.node_state import NodeState

Json = dict[str, Any]

LOOK_MS = 3000  # readings change every five seconds
MOST_UNDOS = 30


class _Order(QObject):
    """A change under way. It ends with its Lending, and then hears of no answer."""

    def __init__(self, lending: Lending, what: tuple[str, Json], before: Json | None) -> None:
        super().__init__(lending)
        self._lending, self.what, self.before = lending, what, before

    def done(self, answer: Json) -> None:
        self._lending.carried_out(self, answer)
        self.deleteLater()

    def failed(self, error: AppError) -> None:
        self._lending.refused(self, error)
        self.deleteLater()


class Lending(QObject):
    """Fresh while `watch(True)`; everything it tells is the node's last word."""

    changed = Signal()  # rules or readings are others
    saved = Signal()  # a change is in force; `can_undo` says whether it can be undone
    failed = Signal(object)  # AppError of something that was asked

    def __init__(self, client: NodeClient, pool: NodeState, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._pool = client, pool
        self._told: Json = {}
        self._state: Json = {}
        self._look: Call | None = None
        self._orders: set[_Order] = set()  # under way
        self._before: list[Json] = []
        self._refused: tuple[str, Json, Json | None] | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_MS)
        self._timer.timeout.connect(self.look)
        pool.link_changed.connect(self._link_changed)
        pool.changed.connect(self._pool_changed)
        self._pool_changed()

    @property
    def is_known(self) -> bool:
        return bool(self._told)

    @property
    def state(self) -> Json:
        """As the node said last: state, reason, amounts of memory."""
        return self._state

    @property
    def rules(self) -> Json:
        return self._told.get("rules") or {}

    @property
    def readings(self) -> Json:
        return self._told.get("readings") or {}

    @property
    def most_bytes(self) -> int:
        return int(self._told.get("most_bytes") or 0)

    @property
    def most_threads(self) -> int:
        """Of the processor."""
        return int(self._told.get("most_threads") or 0)

    @property
    def own_most_bytes(self) -> int:
        """What a model of this machine's own user may take."""
        return int(self._told.get("own_most_bytes") or 0)

    @property
    def is_on(self) -> bool:
        """Whether the owner lends at all."""
        return bool(self.rules.get("on", True)) and self.rules.get("memory_bytes") != 0

    @property
    def is_changing(self) -> bool:
        """Whether a change of the rules is on its way: what the node said last is older than that."""
        return any(order.what[0] == "/lending" for order in self._orders)

    @property
    def can_undo(self) -> bool:
        return bool(self._before)

    def watch(self, on: bool) -> None:
        """Somebody looks at it, or nobody does any more."""
        if on:
            self._timer.start()
            self.look()
        else:
            self._timer.stop()

    def look(self) -> None:
        """Ask once, unless the answer to a change is on its way."""
        if self._orders or self._look is not None or not self._pool.is_there:
            return
        self._look = self._client.get("/lending", self._looked, self._not_looked)

    def switch(self, on: bool) -> None:
        """Lend, or lend nothing; the limit stays for the next time."""
        given: Json = {"on": on}
        if on and self.rules.get("memory_bytes") == 0:
            given["memory_bytes"] = None
        self.change(given)

    def change(self, given: Json) -> None:
        """Change these rules; what they were is kept for `undo`."""
        before = {key: self.rules.get(key) for key in given}
        if given != before:
            self._order("/lending", given, before)

    def undo(self) -> None:
        """As it was before the last change."""
        if self._before:
            self._order("/lending", self._before.pop())

    def allow(self) -> None:
        """Give this machine the household's right to lend. Only an admin may."""
        ident = str(self._pool.node.get("id"))
        machine = (self._pool.snapshot.get("machines") or {}).get(ident) or {}
        roles = sorted({*(machine.get("roles") or []), "lender"})
        self._order(f"/machines/{ident}/roles", {"roles": roles})

    def again(self) -> None:
        """What was refused last, once more."""
        refused, self._refused = self._refused, None
        if refused is not None:
            self._order(*refused)

    def pause(self, seconds: float | None = None, *, at_once: bool = False) -> None:
        """By hand: for so long, or until resumed. At once ends running answers, too."""
        self._order("/lending/pause", {"seconds": seconds, "at_once": at_once})

    def resume(self) -> None:
        self._order("/lending/resume", {})

    def _order(self, path: str, body: Json, before: Json | None = None) -> None:
        if self._look is not None:  # its answer would be older than this change
            self._look.cancel()
            self._look = None
        order = _Order(self, (path, body), before)
        self._orders.add(order)
        self._client.post(path, body, order.done, order.failed)

    def carried_out(self, order: _Order, answer: Json) -> None:
        """The node's answer to a change."""
        self._orders.discard(order)
        if "rules" in answer:
            self._told, self._state = answer, answer["lending"]
        if order.before is not None:
            self._before = [*self._before, order.before][-MOST_UNDOS:]
        self.changed.emit()
        if order.what[0] == "/lending":
            self.saved.emit()

    def refused(self, order: _Order, error: AppError) -> None:
        self._orders.discard(order)
        self._refused = (*order.what, order.before)
        self.changed.emit()  # everything shows again what is in force
        self.failed.emit(error)

    def _looked(self, answer: Json) -> None:
        self._look = None
        self._told, self._state = answer, answer["lending"]
        self.changed.emit()

    def _pool_changed(self) -> None:
        self._state = self._pool.node.get("lending") or {}
        self.changed.emit()

    def _not_looked(self, error: AppError) -> None:
        """The window's own bar says that the node is away."""
        self._look = None

    def _link_changed(self) -> None:
        if not self._pool.is_there:
            self._look = None
            self._orders.clear()
        elif self._timer.isActive():
            self.look()
