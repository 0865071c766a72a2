"""Models that other programs of this computer hold: found once, and used in place when a person says so."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from app.core.errors import AppError
from app.gui.api.node_client import Call, Json
from app.gui.api.node_state import Link
from app.gui.app.app_context import AppContext
from app.gui.look.sentences import said
from app.gui.models.transfers import checking_words


class OtherModels(QObject):
    """What several of the first steps show. `models`: all that can be taken, the largest first; `taken`: those of
    them that are on the shelf by now; `problem`: why the last one that failed is not."""

    changed = Signal()

    def __init__(self, services: AppContext, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._pool, self._importing = (services.client, services.pool, services.importing)
        self._call: Call | None = None
        self._wanted = self._has_looked = False
        self.models: list[Json] = []
        self.taken: list[Json] = []
        self.problem = ""
        self._pool.link_changed.connect(self._look)
        self._importing.changed.connect(self.changed)
        self._importing.ended.connect(self._ended)

    def look(self) -> None:
        """Ask the node, once it is there; it takes some seconds. Where it does not answer, nothing was found."""
        self._wanted = True
        self._look()

    @property
    def left(self) -> list[Json]:
        """Those that can be taken still."""
        return [one for one in self.models if one not in self.taken]

    @property
    def is_busy(self) -> bool:
        """Whether one of them is taken in now, or waits for that."""
        return bool(self._paths & set(self._importing.paths))

    @property
    def progress(self) -> tuple[str, str]:
        """The file that is checked now, and how far that is."""
        return self._importing.name, checking_words(self._importing)

    def take(self) -> None:
        """All that are left: each is read once, and used where it is."""
        self.problem = ""
        for one in self.left:
            self._importing.add(str(one["path"]), str(one["name"]))

    def stop(self) -> None:
        """Those that are on the shelf stay there."""
        self._importing.leave(self._paths)

    # inside

    @property
    def _paths(self) -> set[str]:
        return {str(one["path"]) for one in self.models}

    def _look(self) -> None:
        asks = self._wanted and not self._has_looked and self._call is None
        if asks and self._pool.link is Link.THERE:
            self._call = self._client.get("/found", self._found, self._none)

    def _found(self, answer: Json) -> None:
        self._call, self._has_looked = None, True
        self.models = usable(answer["files"])
        self.changed.emit()

    def _none(self, _: AppError) -> None:
        self._call = None

    def _ended(self, path: str, error: AppError | None) -> None:
        ours = next((one for one in self.models if one["path"] == path), None)
        if ours is None:
            return
        if error is None:
            self.taken.append(ours)
        else:
            self.problem = said(error)
        self.changed.emit()


def usable(files: Sequence[Json]) -> list[Json]:
    """Those that can be taken, the largest first; what is on the shelf is offered there."""
    found = [one for one in files if one["usable"] and not one["on_shelf"]]
    return sorted(found, key=lambda one: -int(one["size_bytes"]))
