"""The base class of the pages of the first run."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.core.errors import AppError
from app.gui.app.app_context import AppContext
from app.gui.look import sizes
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column

ROLE_KEY, BOTH, LEND = "first_run/role", "both", "lend"


class Step(QWidget):
    """A page of the first run, with a title, a sentence and its content.

    Every page has a main button and a secondary button below it, with labels and effects that the page determines.
    Subclasses fill `content`. The user can leave every choice at its default.
    """

    changed = Signal()  # the buttons may have other labels now
    finished = Signal()  # show the next page
    left = Signal(str)  # end the first run and open this page, or the default page for ""
    failed = Signal(object)  # AppError, shown above the page
    moved = Signal()  # the page shows something else, so the keyboard focus moves to where the user goes on
    retried = Signal()  # the user tries again, so an earlier error no longer matters

    def __init__(self, services: AppContext, title: str, sentence: str) -> None:
        super().__init__()
        self.services = services
        self.title = label(title, "title")
        self.title.setWordWrap(True)
        self.sentence = paragraph(sentence, "muted")
        self.content: QVBoxLayout = column(gap=sizes.L)
        box = column(self.title, self.sentence, gap=sizes.S)
        box.addSpacing(sizes.S)
        box.addLayout(self.content)
        box.addStretch(1)
        self.setLayout(box)

    @property
    def main_label(self) -> str:
        """The label of the main button, or "" if there is nothing to click now."""
        return self.tr("Continue")

    @property
    def main_enabled(self) -> bool:
        """Return whether the main button can be clicked. If not, the page itself shows the reason."""
        return True

    @property
    def quiet_label(self) -> str:
        """The label of the secondary button, or "" if there is none."""
        return ""

    @property
    def can_go_back(self) -> bool:
        """Return whether the user may return to the previous page."""
        return True

    @property
    def first_focus(self) -> QWidget | None:
        """The widget that gets the keyboard focus when the page is shown, or None for the main button."""
        return None

    @property
    def in_view(self) -> QWidget | None:
        """The part of the page that the user needs now, or None for the top. A small window scrolls to it."""
        return None

    def press_main(self) -> None:
        """Respond to a click on the main button."""
        self.finished.emit()

    def press_quiet(self) -> None:
        """Respond to a click on the secondary button."""
        self.finished.emit()

    def entered(self) -> None:
        """Prepare the page before it is shown."""

    def cancel(self) -> None:
        """Cancel unfinished work, because the page is no longer shown."""

    def report(self, error: AppError) -> None:
        """Show an error above the page."""
        self.failed.emit(error)

    @property
    def lends_only(self) -> bool:
        """Return whether nobody will chat on this computer."""
        return self.services.preferences.text(ROLE_KEY, BOTH) == LEND
