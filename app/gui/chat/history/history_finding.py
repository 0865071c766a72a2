"""One search at a time through the history, in steps too short to be felt."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PySide6.QtCore import QObject, QTimer, Signal

from app.gui.chat.history.history import History
from app.gui.chat.history.history_search import Hit

STEP_S = 0.02  # of the window's time for each turn
PATIENCE_S = 0.3  # then what was found so far is shown


class Finding(QObject):
    """`begin` with words; `found` comes with all hits, and before that with some if it takes long."""

    found = Signal(object, bool)  # list[Hit]; whether these are all

    def __init__(self, history: History, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._history = history
        self._words = ""
        self._hits: list[Hit] = []
        self._steps: Iterator[Hit | None] | None = None  # None: nothing is looked for
        self._again = False  # the history is another since it began
        self._shown_at = 0.0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._some)

    @property
    def busy(self) -> bool:
        return self._steps is not None

    def begin(self, words: str) -> None:
        """Look for them, or look again. The first step is done at once."""
        if self.busy and words == self._words:
            self._again = True  # what is under way comes to its end first
            return
        first = words != self._words
        self._words, self._hits, self._again = words, [], False
        self._steps = self._history.looking(words)
        self._shown_at = time.monotonic() if first else float("inf")  # else the old ones stay
        self._timer.start(0)
        self._some()

    def stop(self) -> None:
        """Nobody looks for anything."""
        self._timer.stop()
        self._words, self._hits, self._steps = "", [], None

    def _some(self) -> None:
        until = time.monotonic() + STEP_S
        for hit in self._steps or ():
            if hit is not None:
                self._hits.append(hit)
            if time.monotonic() > until:
                self._show_some()
                return
        self._timer.stop()
        self._steps = None
        self.found.emit(list(self._hits), True)
        if self._again:
            self.begin(self._words)

    def _show_some(self) -> None:
        now = time.monotonic()
        if now - self._shown_at > PATIENCE_S:
            self._shown_at = now
            self.found.emit(list(self._hits), False)
