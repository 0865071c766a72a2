"""Notices that say what happened and what to do. The technical details of internal errors are collapsed."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from app.core.errors import AppError
from app.gui.app.navigation import LOG_PAGE, log_button_text, page_actions, technical_details
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import said
from app.gui.look.theme import Theme, set_role
from app.gui.widgets.buttons import IconButton, wrapping
from app.gui.widgets.flow import LEAST, Beside, Flow
from app.gui.widgets.fold import Fold
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import clear_layout, column, layout_widget

Go = Callable[[str], object]  # opens a page by its address


class Technical(Fold):
    """Collapsed technical details, with a button that opens the log."""

    def __init__(self, theme: Theme, go: Go, words: str) -> None:
        content = QWidget()
        log = wrapping(log_button_text(), lambda: go(LOG_PAGE))
        content.setLayout(column(paragraph(words, "caption"), Flow(log), gap=sizes.S))
        super().__init__(theme, self.tr("Details"), content)


Action = tuple[str, Callable[[], object]]
LONG = 160  # length in characters above which a sentence needs wider lines
LINE = 56  # minimum number of characters per line of such a sentence
KINDS = {"info": "notice", "warning": "notice-warning", "error": "notice-error"}


class Notice(QFrame):
    """A notice within a page, hidden until `say` is called.

    close: called by the close button. The default is `clear`.
    """

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
        """Show a sentence, with a button for each action.

        kind: info, warning or error.
        """
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
        """Show an error. `go` is called to open a page of the window."""
        there = actions or page_actions(error.reason.code, go)
        self.say(said(error), "error", *there, closable=closable)
        if details := technical_details(error):
            self._details = Technical(self._theme, go, details)
            self._box.addWidget(self._details)

    def clear(self) -> None:
        """Hide the notice."""
        self.sentence = ""
        self.hide()


class NarrowNotice(QFrame):
    """A notice for narrow columns, with its buttons below the sentence. It is hidden until `say` is called."""

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
        """Show a sentence, with a button for each action.

        kind: info, warning or error.
        """
        clear_layout(self._box)
        self.sentence = sentence
        set_role(self, KINDS[kind])
        words = paragraph(sentence)
        words.setAccessibleName(sentence)
        close = IconButton(self._theme, "close", self.tr("Close this notice"), self.clear)
        buttons = [wrapping(name, act) for name, act in actions]
        self._box.addWidget(words)
        self._box.addWidget(layout_widget(Flow(*buttons, close, last_right=True)))
        self.show()
        announce(self, sentence)

    def fail(self, error: AppError, go: Go) -> None:
        """Show an error. `go` is called to open a page of the window."""
        self.say(said(error), "error")
        if details := technical_details(error):
            self._box.insertWidget(1, Technical(self._theme, go, details))

    def clear(self) -> None:
        """Hide the notice."""
        self.sentence = ""
        self.hide()


class Remark(QWidget):
    """A sentence about the widget above it, optionally with collapsed details.

    role: the style of the initial text.
    """

    def __init__(self, theme: Theme, go: Go, text: str = "", role: str = "error") -> None:
        super().__init__()
        self._theme, self._go = theme, go
        self._words = paragraph(text, role)
        self._told = ""  # the displayed details
        self._details: Technical | None = None
        self._box = column(self._words, gap=sizes.XS)
        self.setLayout(self._box)

    def text(self) -> str:
        return self._words.text()

    def say(self, sentence: str, role: str = "error", details: str = "") -> None:
        set_role(self._words, role)
        self._words.setText(sentence)
        if details == self._told:
            return  # the details stay open if they are
        self._told = details
        if self._details is not None:
            self._details.hide()
            self._details.deleteLater()
        self._details = Technical(self._theme, self._go, details) if details else None
        if self._details is not None:
            self._box.addWidget(self._details)

    def fail(self, error: AppError) -> None:
        """Show an error, and announce it to screen readers."""
        self.say(said(error), "error", technical_details(error))
        announce(self, self.text())
