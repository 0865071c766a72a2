"""The queue of model files to import. The node checks and hashes each file first."""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.api.models import ModelResponse
from app.api.responses import ProgressLine
from app.core.errors import AppError
from app.decoding import decode
from app.gui.api.node_client import Calls
from app.gui.api.node_state import Link, NodeState
from app.gui.app.preferences import Preferences

IMPORT = "import"
QUEUE_KEY = "shelf/importing"
INTERRUPTION_CODES = ("node_away", "node_went_away")
MIN_READING_S = 0.5  # minimum reading time before a speed is shown


class ImportQueue(QObject):
    """The queue of imports. `path` is the file being imported, or an empty string.

    The queue outlives pages, because hashing can take minutes. If the window or the node stops during an import,
    the import is restarted later.
    """

    changed = Signal()
    imported = Signal(object)  # ShelfModel
    failed = Signal()  # see `take_unseen_error`
    ended = Signal(str, object)  # path, AppError or None

    def __init__(self, pool: NodeState, preferences: Preferences, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool, self._preferences, self._calls = pool, preferences, Calls()
        self._waiting = _load_unfinished(preferences)
        self._name: str | None = None  # name of `path` in the library
        self._unseen: AppError | None = None
        self.path = ""
        self.done_bytes = self.total_bytes = 0
        self._began = (0.0, 0)  # time and bytes of the first progress report
        pool.link_changed.connect(self._link_changed)

    @property
    def name(self) -> str:
        return Path(next(iter(self.paths), "")).name

    @property
    def is_broken(self) -> bool:
        """Return whether an import was interrupted and has not resumed."""
        return not self.path and bool(self._waiting)

    @property
    def bytes_per_s(self) -> float | None:
        """The reading speed, or None if it is not known yet."""
        at, done = self._began
        passed = time.monotonic() - at
        return (self.done_bytes - done) / passed if at and passed >= MIN_READING_S else None

    @property
    def seconds_left(self) -> float | None:
        pace = self.bytes_per_s
        return (self.total_bytes - self.done_bytes) / pace if pace else None

    @property
    def paths(self) -> list[str]:
        """The file being imported, followed by the queued files."""
        return [*([self.path] if self.path else []), *(path for path, _ in self._waiting)]

    def take_unseen_error(self) -> AppError | None:
        """Return and clear the latest import error that no page has shown."""
        error, self._unseen = self._unseen, None
        return error

    def add(self, path: str, name: str | None = None) -> None:
        """Queue a file. `name` is its name in the library; the default is derived from the file."""
        self._waiting.append((path, name))
        if not self.path:
            self.resume()
        else:
            self._save()

    def resume(self) -> None:
        """Start the next import in the queue."""
        self._next()

    def cancel(self) -> None:
        """Cancel the current or interrupted import, and start the next one."""
        self._calls.end(IMPORT)
        if not self.path:
            del self._waiting[:1]
        self._next()

    def cancel_paths(self, paths: Collection[str]) -> None:
        """Cancel the imports of these files."""
        self._waiting = [(path, name) for path, name in self._waiting if path not in paths]
        if self.path in paths:
            self.cancel()
        else:
            self._save()
            self.changed.emit()

    def _next(self) -> None:
        self.path, self.done_bytes, self.total_bytes = "", 0, 0
        self._began = (0.0, 0)
        if self._waiting:
            self.path, self._name = self._waiting.pop(0)
            body = {"path": self.path, "name": self._name}
            call = self._pool.client.call(
                "POST",
                "/models",
                body,
                self._done,
                self._refused,
                self._stepped,
                answer=ModelResponse,
                each=ProgressLine,
            )
            self._calls.keep(IMPORT, call)
        self._save()
        self.changed.emit()

    def _save(self) -> None:
        """Save the unfinished imports in the preferences, so that they can be resumed after a restart."""
        now = [(self.path, self._name)] if self.path else []
        text = json.dumps([*now, *self._waiting])
        if text != self._preferences.text(QUEUE_KEY, "[]"):
            self._preferences.keep(QUEUE_KEY, text)

    def _link_changed(self) -> None:
        if self._pool.link is Link.THERE and self.is_broken:
            self.resume()

    def _stepped(self, line: ProgressLine) -> None:
        self.done_bytes, self.total_bytes = line.progress.done, line.progress.total
        if not self._began[0]:
            self._began = (time.monotonic(), self.done_bytes)
        self.changed.emit()

    def _ended(self, error: AppError | None) -> None:
        """Report the end of an import before starting the next one, which resets the state that listeners read."""
        path, self.path = self.path, ""
        self.ended.emit(path, error)
        self._next()

    def _done(self, answer: ModelResponse) -> None:
        self._calls.done(IMPORT)
        self._ended(None)
        self.imported.emit(answer.model)

    def _refused(self, error: AppError) -> None:
        self._calls.done(IMPORT)
        self._unseen = error
        if error.reason.code in INTERRUPTION_CODES:
            self._waiting.insert(0, (self.path, self._name))
            self.path = ""
            self.changed.emit()
        else:
            self._ended(error)
        self.failed.emit()


def _load_unfinished(preferences: Preferences) -> list[tuple[str, str | None]]:
    """Load the imports that were unfinished when the previous window closed."""
    try:
        return decode(preferences.text(QUEUE_KEY, "[]"), list[tuple[str, str | None]])
    except ValueError:
        return []
