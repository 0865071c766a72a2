"""A page of the window: a title with its buttons, a notice, the content."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.core.errors import AppError
from app.gui.app.app_context import AppContext
from app.gui.look import theme as sizes
from app.gui.look.theme import set_role
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column
from app.gui.widgets.notice import Action, Notice


class Page(QWidget):
    """Subclasses fill `self.head` (beside the title) and `self.content`.

    What takes long they leave for `later`: the window makes it a step at a time, and shows what is whole.
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
        """Parts that are made before the page is shown, each some milliseconds of work."""
        self._missing.extend(steps)

    def go_on(self) -> bool:
        """Make the next part that is missing; False where none is."""
        if not self._missing:
            return False
        self._missing.popleft()()
        return True

    def finish(self) -> None:
        """Make all that is missing."""
        while self.go_on():
            pass

    def setVisible(self, visible: bool) -> None:  # noqa: N802  Qt's name
        if visible:
            self.finish()  # nobody sees half a page
        super().setVisible(visible)

    def fail(self, error: AppError, *actions: Action) -> None:
        """Say what went wrong, with what to press."""
        self.notice.fail(error, self.services.go, *actions)

    @property
    def part(self) -> str:
        """What `open` would show now; "" where it has no parts."""
        return ""

    @property
    def is_busy(self) -> bool:
        """Whether something would be lost if the page went now."""
        return False

    def take_focus(self) -> None:
        """The keyboard goes to where a person goes on."""

    def end(self) -> None:
        """It goes: nothing is asked or heard any more."""

    def open(self, part: str) -> None:
        """Show a part of it, by its name."""

    def shown(self) -> None:
        """The page came to the front."""
