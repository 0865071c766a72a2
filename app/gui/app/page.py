"""The base class of pages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.core.errors import AppError
from app.gui.app.app_context import AppContext
from app.gui.look import sizes
from app.gui.look.theme import set_role
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column
from app.gui.widgets.notice import Action, Notice


class Page(QWidget):
    """A page of the window, with a title, controls, a notice and content.

    Subclasses fill `self.head` (beside the title) and `self.content`. They pass slow steps to `later`. The window
    then builds the page step by step and shows it when it is complete.
    """

    def __init__(self, services: AppContext, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "page")
        self.services = services
        self._missing: deque[Callable[[], object]] = deque()
        self.title = label(title, "title")
        self.head = Flow(self.title, right_from=1)
        self.notice = Notice(services.theme)
        self.content = column(gap=sizes.L)
        box = column(self.head, self.notice, gap=sizes.L)
        box.addLayout(self.content, 1)
        box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.XL)
        self.setLayout(box)

    def later(self, *steps: Callable[[], object]) -> None:
        """Add steps that build the page before it is shown. Each should take only a few milliseconds."""
        self._missing.extend(steps)

    def go_on(self) -> bool:
        """Run the next step, and return True. Return False if no step remains."""
        if not self._missing:
            return False
        self._missing.popleft()()
        return True

    def finish(self) -> None:
        """Run all remaining steps."""
        while self.go_on():
            pass

    def setVisible(self, visible: bool) -> None:  # noqa: N802  Qt's name
        if visible:
            self.finish()  # never show an incomplete page
        super().setVisible(visible)

    def fail(self, error: AppError, *actions: Action) -> None:
        """Show an error, with these actions as buttons."""
        self.notice.fail(error, self.services.go, *actions)

    @property
    def part(self) -> str:
        """The name of the current section, as passed to `open`, or "" if the page has no sections."""
        return ""

    @property
    def is_busy(self) -> bool:
        """Return whether the page has unfinished work that would be lost if it closed."""
        return False

    def take_focus(self) -> None:
        """Move the keyboard focus to the widget where the user would continue."""

    def end(self) -> None:
        """Cancel all requests before the page is deleted."""

    def open(self, part: str) -> None:
        """Show the section with this name."""

    def shown(self) -> None:
        """Respond to being shown, for example by refreshing the content."""
