"""Models that other programs of this computer hold: found once, offered before any download, used in place."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.core.errors import AppError
from app.gui.api.node_client import Call, Json
from app.gui.api.node_state import Link
from app.gui.app.app_context import AppContext
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import said
from app.gui.models.transfers import checking_words
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, column, row

MOST_NAMES = 3


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


class AlreadyHere(QWidget):
    """Hidden where there are none. is_last: nothing follows, so it leads to their page (`wanted`)."""

    wanted = Signal()

    def __init__(self, others: OtherModels, *, is_last: bool = False) -> None:
        super().__init__()
        self._others, self._is_last, self._was_busy = others, is_last, False
        self.about, self.names = paragraph(""), paragraph("", "caption")
        self.problem = paragraph("", "warning")
        self.take, self.stop = button("", others.take), button(self.tr("Stop"), others.stop)
        self.show_them = button(self.tr("Show them on the page Models"), self.wanted.emit)
        inner = card(
            label(self.tr("Already on this computer"), "section"),
            self.about,
            self.names,
            self.problem,
            row(self.take, self.stop, self.show_them, None),
            gap=sizes.S,
        )
        self.setLayout(column(inner))
        others.changed.connect(self._tell)
        self._tell()

    def _tell(self) -> None:
        """What there is and what became of it."""
        others = self._others
        left, busy = others.left, others.is_busy
        self.setVisible(bool(others.models))
        self.about.setText(self._going_on() if busy else self._offer() if left else self._done())
        names = [str(one["name"]) for one in left or others.models]
        self.names.setText(", ".join(names[:MOST_NAMES]) + ("…" if len(names) > MOST_NAMES else ""))
        self.problem.setText(others.problem)
        self.problem.setVisible(bool(others.problem))
        self.take.setText(self.tr("Use %n model(s)", "", len(left)))
        if busy:  # first: the keyboard goes on to it
            self.stop.show()
        self.take.setVisible(bool(left) and not busy)
        self.stop.setVisible(busy)
        self.show_them.setVisible(self._is_last and not busy)
        if self._was_busy and not busy and self.isVisible():
            announce(self, others.problem or self.about.text())
        self._was_busy = busy

    def _offer(self) -> str:
        left = self._others.left
        apps = ", ".join(dict.fromkeys(str(one["app"]) for one in left))
        text = self.tr(
            "%n model(s) of {apps} can be used in place, without a download: {size}. "
            "Each file is read once to check it.",
            "",
            len(left),
        )
        size = formats.size(sum(int(one["size_bytes"]) for one in left))
        return text.format(apps=apps, size=size)

    def _going_on(self) -> str:
        name, how_far = self._others.progress
        text = self.tr("{name}: {how_far}. You can go on meanwhile.")
        return text.format(name=name, how_far=how_far)

    def _done(self) -> str:
        return self.tr("%n model(s) can be loaded on the page Models.", "", len(self._others.taken))
