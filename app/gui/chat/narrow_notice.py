"""A notice for a narrow column: the sentence above, the buttons below it."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from app.core.errors import AppError
from app.gui.app.mending_places import inner
from app.gui.look import theme as sizes
from app.gui.look.announce import announce
from app.gui.look.sentences import said
from app.gui.look.theme import Theme, set_role
from app.gui.widgets.buttons import IconButton, wrapping
from app.gui.widgets.field_remark import Go, Technical
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import clear, column, held
from app.gui.widgets.notice import KINDS, Action


class NarrowNotice(QFrame):
    """Hidden until `say`; the newest sentence replaces the one before."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self._box = column(gap=sizes.S)
        self._box.setContentsMargins(sizes.M, sizes.S, sizes.S, sizes.S)
        self.setLayout(self._box)
        self.sentence = ""
        self.hide()

    def say(self, sentence: str, kind: str = "info", *actions: Action) -> None:
        """Show a sentence. kind: info, warning or error; each action is a button."""
        clear(self._box)
        self.sentence = sentence
        set_role(self, KINDS[kind])
        words = paragraph(sentence)
        words.setAccessibleName(sentence)
        close = IconButton(self._theme, "close", self.tr("Close this notice"), self.clear)
        buttons = [wrapping(name, act) for name, act in actions]
        self._box.addWidget(words)
        self._box.addWidget(held(Flow(*buttons, close, last_right=True)))
        self.show()
        announce(self, sentence)

    def fail(self, error: AppError, go: Go) -> None:
        """Say what went wrong."""
        self.say(said(error), "error")
        if details := inner(error):
            self._box.insertWidget(1, Technical(self._theme, go, details))

    def clear(self) -> None:
        """Nothing to say any more."""
        self.sentence = ""
        self.hide()
