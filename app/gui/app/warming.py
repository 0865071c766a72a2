"""Reads the code of pages that were not shown yet, one module after another while the window rests."""

from __future__ import annotations

import importlib
import linecache
import pkgutil
import sys
from collections.abc import Iterator

from PySide6.QtCore import QObject, QTimer

from app import gui

PARTS = ("household", "shelf", "activity", "lending", "settings")  # of the pages but the chat's
FIRST = (  # what modules of these parts need and that takes long to read, a piece at a time
    "statistics", "email.errors", "email.charset", "email.message", "importlib.metadata", "app.core.model",
    "app.core.planner.placement", "app.core.planner.shortage", "app.core.planner.verdict",
)  # fmt: skip
BEFORE_MS, BETWEEN_MS = 400, 25  # a person's first click comes first, and any other between two


class Warming(QObject):
    """Only code is read: a page that is made costs memory, also where nobody ever opens it.

    Code takes up to half of the moment that a page needs at its first showing.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._names = _names()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._next)
        self._timer.start(BEFORE_MS)

    @property
    def is_done(self) -> bool:
        return not self._timer.isActive()

    def _next(self) -> None:
        self._timer.setInterval(BETWEEN_MS)
        name = next((one for one in self._names if one not in sys.modules), None)
        if name is None:
            self._timer.stop()
        else:
            importlib.import_module(name)
        linecache.clearcache()  # PySide reads the source of every module for its own ends, and it stays there


def _names() -> Iterator[str]:
    """A page comes after its parts: it reads all of them that are missing, and nobody can click meanwhile."""
    yield from FIRST
    for part in PARTS:
        folders = [f"{folder}/{part}" for folder in gui.__path__]
        found = [one.name for one in pkgutil.iter_modules(folders, f"{gui.__name__}.{part}.")]
        yield from sorted(found, key=lambda name: (name.endswith("_page"), name))
