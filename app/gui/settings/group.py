"""One page of settings: its title, its cards, a search through them, and Reset."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.core.errors import AppError
from app.gui import theme as sizes
from app.gui.node_client import Call, Done, Json
from app.gui.parts.buttons import button
from app.gui.parts.layouts import card, column, line, row
from app.gui.parts.text import label
from app.gui.sentences import said
from app.gui.services import Services
from app.gui.settings.setting import Setting


class Group(QWidget):
    """Subclasses add settings in `__init__`; `refresh` is called when the page comes to the front."""

    told = Signal(str, str)  # a sentence for the page, and its kind: info or error
    can_reset = True

    def __init__(self, services: Services, title: str, picture: str) -> None:
        super().__init__()
        self.services, self.title, self.picture = services, title, picture
        self.heading = label(title, "section")
        self._cards: list[tuple[QFrame, QWidget | None, list[tuple[QWidget | None, Setting]]]] = []
        self._calls: list[Call] = []
        calls = self._calls
        self.destroyed.connect(lambda: _end(calls))  # no answer may reach what is gone
        self._reset = button(self.tr("Reset this page"), self._reset_all, "link")
        head = row(self.heading, None, self._reset, gap=sizes.S)
        self.box: QVBoxLayout = column(head, gap=sizes.M)
        self.setLayout(self.box)

    def add(self, *settings: Setting, title: str = "") -> QFrame:
        """A card with these settings, a hairline between each two."""
        heading = label(title, "muted") if title else None
        if heading is not None:
            self.box.addSpacing(sizes.S)
            self.box.addWidget(heading)
        frame = card(gap=0)
        rows: list[tuple[QWidget | None, Setting]] = []
        box = frame.layout()
        assert box is not None
        box.setContentsMargins(sizes.L, sizes.S, sizes.L, sizes.S)
        for number, setting in enumerate(settings):
            between = line() if number else None
            if between is not None:
                box.addWidget(between)
            box.addWidget(setting)
            rows.append((between, setting))
        self.box.addWidget(frame)
        self._cards.append((frame, heading, rows))
        return frame

    def search(self, words: list[str]) -> int:
        """Show only settings in which all `words` stand; how many."""
        whole = all(word in self.title.casefold() for word in words)
        self._reset.setVisible(self.can_reset and not words)
        many = 0
        for frame, heading, rows in self._cards:
            shown = 0
            for between, setting in rows:
                found = whole or setting.matches(words)
                setting.setVisible(found)
                if between is not None:
                    between.setVisible(found and shown > 0)
                shown += found
            frame.setVisible(shown > 0)
            if heading is not None:
                heading.setVisible(shown > 0)
            many += shown
        return many

    def refresh(self) -> None:
        """The page came to the front, or the node came back."""

    def reset(self) -> None:
        """Everything of this page as it was when the app was new."""

    def _reset_all(self) -> None:
        self.reset()
        words = self.tr("Everything on {page} is as it was at first.")
        self.told.emit(words.format(page=self.title), "info")

    # asking the node

    def ask(self, method: str, path: str, done: Done, body: Json | None = None) -> None:
        """Ask the node; a refusal becomes a sentence of the page."""
        self._calls[:] = [call for call in self._calls if call.running]
        call = self.services.client.call(method, path, body, done, self.fail)
        if call is not None:
            self._calls.append(call)

    def fail(self, error: AppError) -> None:
        self.told.emit(said(error), "error")

    def cancel(self) -> None:
        """Nothing more is heard of what was asked."""
        _end(self._calls)


def _end(calls: list[Call]) -> None:
    for call in calls:
        call.cancel()
    calls.clear()
