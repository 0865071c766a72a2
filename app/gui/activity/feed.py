"""Follows the node's journal: asks for what is new whenever the snapshot says that there is more."""

from __future__ import annotations

from collections import deque
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.errors import AppError
from app.gui.activity.entries import Answer, Happened, Lent, Running, answer_of, happened_of, running_of
from app.gui.api.node_client import Call
from app.gui.api.node_state import NodeState

Json = dict[str, Any]

MOST_KEPT = 200  # as the node keeps
WATCH_MS = 500  # between two looks at answers that are being made, while somebody watches
SLOW_MS = 15_000  # and at what is lent


class Feed(QObject):
    """The journal as far as it is known; newest entries last."""

    changed = Signal()  # entries are new
    running_changed = Signal()  # `running` or `lent` is another

    def __init__(self, pool: NodeState, parent: QObject) -> None:
        super().__init__(parent)
        self._pool = pool
        self.answers: deque[Answer] = deque(maxlen=MOST_KEPT)
        self.events: deque[Happened] = deque(maxlen=MOST_KEPT)
        self.running: list[Running] = []
        self.lent = Lent()
        self._known = 0
        self._watched = False
        self._call: Call | None = None
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._ask)
        pool.changed.connect(self._look)
        self._look()

    def watch(self, watched: bool) -> None:
        """Somebody looks at it, or no more."""
        self._watched = watched
        self._look()
        if watched:
            self._ask()

    def stop(self) -> None:
        """The page goes."""
        self._timer.stop()
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _look(self) -> None:
        last = (self._pool.snapshot.get("journal") or {}).get("last", 0)
        if last < self._known:  # the node began a new journal
            self._known = 0
            self.answers.clear()
            self.events.clear()
        if last > self._known:
            self._ask()
        answers = self._pool.snapshot.get("answers") or {}
        if not self._watched:
            self._timer.stop()
            return
        busy = answers.get("running") or answers.get("waiting")
        pace = WATCH_MS if busy else SLOW_MS
        if not self._timer.isActive() or self._timer.interval() != pace:
            self._timer.start(pace)

    def _ask(self) -> None:
        if self._call is not None and self._call.running:
            return  # its answer leads to the next look
        path = f"/journal?since={self._known}"
        self._call = self._pool.client.get(path, self._take, self._failed)

    def _take(self, told: Json) -> None:
        self._call = None
        new = bool(told["answers"] or told["events"])
        self.answers.extend(map(answer_of, told["answers"]))
        self.events.extend(map(happened_of, told["events"]))
        self._known = told["last"]
        running, lent = [running_of(one) for one in told["now"]], Lent(**told["lent"])
        other = (running, lent) != (self.running, self.lent)
        self.running, self.lent = running, lent
        if new:
            self.changed.emit()
        if other:
            self.running_changed.emit()
        self._look()

    def _failed(self, error: AppError) -> None:
        """The node went away: the bar over the page says so, and the next snapshot asks again."""
        self._call = None
