"""The base class of dialogs that call the node."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.api.node_state import Link
from app.gui.app.app_context import AppContext
from app.gui.widgets.dialog import CompactDialog
from app.gui.widgets.notice import Notice

LOST = (Link.STARTING, Link.AWAY, Link.OTHER_VERSION)


class Sheet(CompactDialog):
    """A dialog that calls the node. It shows errors as a notice, and cancels its requests when it closes.

    needs_node: whether to show an error while the node is unavailable.
    """

    needs_node = True

    def __init__(self, services: AppContext, title: str, sentence: str, parent: QWidget) -> None:
        super().__init__(services.theme, title, sentence, parent)
        self.services = services
        self._calls: list[Call] = []
        self._told = ""
        self.notice = Notice(services.theme)
        self._inner.addWidget(self.notice)
        self._inner.addStretch(1)
        self.finished.connect(self._end)
        self._is_lost = False
        services.pool.link_changed.connect(self._link_changed)

    def keep(self, call: Call | None) -> None:
        """Register a request to cancel when the dialog closes."""
        if call is not None:
            self._calls.append(call)

    def fail(self, error: AppError) -> None:
        self.notice.fail(error, self._leave_for, closable=False)
        self.fit()

    def fit(self) -> None:
        """Resize to the content, and scroll to a new notice."""
        super().fit()
        if self.notice.sentence != self._told:
            self._told = self.notice.sentence
            self._view.ensureWidgetVisible(self.notice, 0, 0)

    def _leave_for(self, page: str) -> None:
        """Close the dialog, which blocks the window, and open a page."""
        self.reject()
        self.services.go(page)

    def came_back(self) -> None:
        """Handle the node becoming available again, for example by repeating a lost request."""

    def _link_changed(self) -> None:
        """Show a notice while the node is unavailable. The window shows one too, but the dialog blocks access to it."""
        pool = self.services.pool
        if self.needs_node and pool.link in LOST:
            self._is_lost = True
            waits = self.tr(
                "The background service isn't running right now. You can continue here when the service is back."
            )
            again = (self.tr("Start again"), pool.try_again)
            actions = (again,) if pool.link is Link.AWAY else ()
            self.notice.say(pool.problem or waits, "error", *actions, closable=False)
            self.fit()
        elif pool.link is Link.THERE and self._is_lost:
            self._is_lost = False
            self.notice.clear()
            self.came_back()
            self.fit()

    def _end(self) -> None:
        for call in self._calls:
            call.cancel()
        self._calls.clear()
