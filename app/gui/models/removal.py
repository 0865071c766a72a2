"""Takes a model off the shelf: with undo where its file stays, with a question where it goes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.errors import AppError
from app.gui.api.node_client import NodeClient, segment
from app.gui.app.page import Page
from app.gui.look import formats
from app.gui.models.importing import Importing
from app.gui.models.model_item import Item
from app.gui.models.node_calls import Calls
from app.gui.widgets.dialog import Compact

Json = dict[str, Any]
REMOVE = "remove"


class Removal(QObject):
    """Asks first what cannot be undone; `question` is the box that is open."""

    failed = Signal(object)  # AppError

    def __init__(self, page: Page, client: NodeClient, importing: Importing) -> None:
        super().__init__(page)
        self._page, self._client, self._importing = page, client, importing
        self._calls = Calls()
        self.question: Compact | None = None

    def ask(self, item: Item) -> None:
        """Remove it, after a question when its file is deleted too."""
        if not item.facts.get("downloaded"):
            self._remove(item)
            return
        size = formats.size(item.facts["file_bytes"])
        self._question(
            self.tr("Delete {name}?").format(name=item.name),
            self.tr("Its file of {size} is deleted. To use it again, it is downloaded again.").format(size=size),
            self.tr("Delete {size}").format(size=size),
            "danger",
            lambda: self._remove(item),
        )

    def ask_anyway(self, name: str, then: Callable[[], object]) -> None:
        """Load what is too big, on this machine alone."""
        self._question(
            self.tr("Try {name} anyway?").format(name=name),
            self.tr(
                "It takes more memory of this computer than it is meant to give. It may be very slow, "
                "or not load. It runs in a process of its own, so Poolhouse goes on either way."
            ),
            self.tr("Try anyway"),
            "",
            then,
        )

    def ask_cancel(self, download: Json, then: Callable[[], object]) -> None:
        """Stop a download of which much is here; pausing would keep it."""
        size = formats.size(download["done_bytes"])
        self._question(
            self.tr("Cancel the download of {name}?").format(name=download["name"]),
            self.tr("The {size} that are here are deleted. Pausing keeps them.").format(size=size),
            self.tr("Delete {size}").format(size=size),
            "danger",
            then,
        )

    def end(self) -> None:
        self._calls.end_all()

    def _question(self, title: str, words: str, yes: str, role: str, then: Callable[[], object]) -> None:
        self.question = box = Compact(self._page.services.theme, title, words, self._page)
        box.offer(self.tr("Cancel"), box.answer(yes, then, role)).setFocus()
        box.finished.connect(self._answered)
        box.open()

    def _answered(self) -> None:
        self.question = None

    def _remove(self, item: Item) -> None:
        path = f"/models/{segment(item.name)}"
        done = partial(self._removed, item)
        self._calls.keep(REMOVE, self._client.delete(path, done, self._refused))

    def _removed(self, item: Item, answer: Json) -> None:
        self._calls.done(REMOVE)
        if answer.get("file_deleted"):
            words = self.tr("{name} is deleted; {size} are free again.").format(
                name=item.name, size=formats.size(answer["freed_bytes"])
            )
            self._page.notice.say(words)
            return
        words = self.tr("{name} is off the list. Its file stays where it is.")
        path = str(item.facts["path"])
        undo = (self.tr("Undo"), lambda: self._back(path, item.name))
        self._page.notice.say(words.format(name=item.name), "info", undo)

    def _back(self, path: str, name: str) -> None:
        self._page.notice.clear()
        self._importing.add(path, name)

    def _refused(self, error: AppError) -> None:
        self._calls.done(REMOVE)
        self.failed.emit(error)
