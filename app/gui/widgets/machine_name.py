"""A machine's name to be typed, and what is wrong with it as it stands."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import QLineEdit

from app.core.ids import MAX_NAME_CHARACTERS
from app.gui.look.announce import announce
from app.gui.widgets.labels import paragraph, show_if

MOST_TYPED = 4 * MAX_NAME_CHARACTERS  # too long is said, not cut


class MachineName(QLineEdit):
    """`problem` belongs below it; `judged` tells when that may be another. `needed`: it may not be empty."""

    judged = Signal()

    def __init__(self, called: str, name: str = "") -> None:
        super().__init__(name)
        self.needed = True
        self.setMaxLength(MOST_TYPED)
        self.setAccessibleName(called)
        self.problem = paragraph("", "error")
        self.problem.hide()
        self.textChanged.connect(self._judge)

    @property
    def name(self) -> str:
        return " ".join(self.text().split())

    @property
    def fits(self) -> bool:
        return not self._words(len(self.name))

    def _judge(self) -> None:
        words = self._words(len(self.name))
        if words != self.problem.text():
            self.problem.setText(words)
            show_if(self.problem, bool(words))
            self.setAccessibleDescription(words)
            announce(self, words)
        self.judged.emit()

    def _words(self, count: int) -> str:
        if not count and self.needed:
            found = _tr("A name is needed, of at most {limit} characters.")
        elif count > MAX_NAME_CHARACTERS:
            found = _tr("A name has at most {limit} characters; this one has {count}.")
        else:
            return ""
        return found.format(limit=MAX_NAME_CHARACTERS, count=count)


def _tr(text: str) -> str:
    return QCoreApplication.translate("MachineName", text)
