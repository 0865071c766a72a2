"""The base of all pages: a title with buttons, a notice, and the content."""

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
    """A page of the window. Subclasses fill `self.head` (next to the title) and `self.content`.

    Slow parts go to `later`: the window builds them step by step and shows the page when it is complete.
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
        """Add steps that build parts of the page before it is shown. Each should take a few milliseconds."""
        self._missing.extend(steps)

    def go_on(self) -> bool:
        """Run the next step. Return whether there was one."""
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
        """Show an error with actions."""
        self.notice.fail(error, self.services.go, *actions)

    @property
    def part(self) -> str:
        """The part for which `open` shows the current view; "" if the page has no parts."""
        return ""

    @property
    def is_busy(self) -> bool:
        """Return whether closing the page now would lose something."""
        return False

    def take_focus(self) -> None:
        """Set the keyboard focus to where the user continues."""

    def end(self) -> None:
        """Cancel all requests, because the page is about to be deleted."""

    def open(self, part: str) -> None:
        """Show a part of the page by its name."""

    def shown(self) -> None:
        """React to the page being shown."""
