"""A sentence below what it concerns; of a mistake of ours, or of an engine's end, the details folded."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.core.errors import AppError
from app.gui.app.mending_places import LOG, inner, log_words
from app.gui.look import theme as sizes
from app.gui.look.announce import announce
from app.gui.look.sentences import said
from app.gui.look.theme import Theme, set_role
from app.gui.widgets.buttons import wrapping
from app.gui.widgets.flow import Flow
from app.gui.widgets.fold import Fold
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import column

Go = Callable[[str], object]  # opens a page of the window


class Technical(Fold):
    """Closed: words for whoever mends the app, and the way to the log."""

    def __init__(self, theme: Theme, go: Go, words: str) -> None:
        content = QWidget()
        log = wrapping(log_words(), lambda: go(LOG))
        content.setLayout(column(paragraph(words, "caption"), Flow(log), gap=sizes.S))
        super().__init__(theme, self.tr("Details"), content)


class Remark(QWidget):
    """role: how it looks until an error is told."""

    def __init__(self, theme: Theme, go: Go, text: str = "", role: str = "error") -> None:
        super().__init__()
        self._theme, self._go = theme, go
        self._words = paragraph(text, role)
        self._told = ""  # what is folded
        self._details: Technical | None = None
        self._box = column(self._words, gap=sizes.XS)
        self.setLayout(self._box)

    def text(self) -> str:
        return self._words.text()

    def say(self, sentence: str, role: str = "error", details: str = "") -> None:
        set_role(self._words, role)
        self._words.setText(sentence)
        if details == self._told:
            return  # it may be open
        self._told = details
        if self._details is not None:
            self._details.hide()
            self._details.deleteLater()
        self._details = Technical(self._theme, self._go, details) if details else None
        if self._details is not None:
            self._box.addWidget(self._details)

    def fail(self, error: AppError) -> None:
        """Say what went wrong, aloud too."""
        self.say(said(error), "error", inner(error))
        announce(self, self.text())
