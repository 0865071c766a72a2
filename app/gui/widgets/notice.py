"""A notice inside a page: what happened, and the one thing to press; of a mistake of ours the details, folded."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from app.core.errors import AppError
from app.gui.app.mending_places import inner, ways
from app.gui.look import theme as sizes
from app.gui.look.announce import announce
from app.gui.look.sentences import said
from app.gui.look.theme import Theme, set_role
from app.gui.widgets.buttons import IconButton, wrapping
from app.gui.widgets.field_remark import Technical
from app.gui.widgets.flow import LEAST, Beside
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import column

Action = tuple[str, Callable[[], object]]
LONG = 160  # characters of a sentence that is no narrow column beside its buttons
LINE = 56  # characters of a line of such a sentence, at least
KINDS = {"info": "notice", "warning": "notice-warning", "error": "notice-error"}


class Notice(QFrame):
    """Hidden until `say`; the newest sentence replaces the one before. `close`: what its cross does, else `clear`."""

    def __init__(self, theme: Theme, parent: QWidget | None = None, close: Callable[[], object] | None = None) -> None:
        super().__init__(parent)
        self._theme, self._close = theme, close or self.clear
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._words = paragraph("")
        self._row = Beside(self._words, gap=sizes.S)
        self._details: QWidget | None = None
        self._box = column(self._row, gap=sizes.XS)
        self._box.setContentsMargins(sizes.M, sizes.S, sizes.S, sizes.S)
        self.setLayout(self._box)
        self.sentence = ""
        self.hide()

    def say(self, sentence: str, kind: str = "info", *actions: Action, closable: bool = True) -> None:
        """Show a sentence. kind: info, warning or error; each action is a button."""
        while (old := self._row.takeAt(1)) is not None:
            if (gone := old.widget()) is not None:
                gone.hide()
                gone.deleteLater()
        if self._details is not None:
            self._details.hide()
            self._details.deleteLater()
            self._details = None
        self.sentence = sentence
        set_role(self, KINDS[kind])
        picture = IconButton(self._theme, kind, self.tr("Close this notice"), self._close)
        picture.setEnabled(closable)
        self._words.setText(sentence)
        self._words.setAccessibleName(sentence)
        self._row.set_least(LINE if len(sentence) > LONG else LEAST)
        for name, act in actions:
            self._row.addWidget(wrapping(name, act))
        if closable:
            picture.show_picture("close")
            self._row.addWidget(picture)
        else:
            picture.deleteLater()
        self.show()
        announce(self, sentence)

    def fail(self, error: AppError, go: Callable[[str], object], *actions: Action, closable: bool = True) -> None:
        """Say what went wrong. `go` opens a page of the window."""
        there = actions or ways(error.reason.code, go)
        self.say(said(error), "error", *there, closable=closable)
        if details := inner(error):
            self._details = Technical(self._theme, go, details)
            self._box.addWidget(self._details)

    def clear(self) -> None:
        """Nothing to say any more."""
        self.sentence = ""
        self.hide()
