"""Makes a page at its first showing, in steps between which the window hears clicks and keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from app.gui.app.page import Page

AT_ONCE = 25  # widgets dressed between two events: some milliseconds


class Opening(QObject):
    """One page on its way. `placed(page)` gives it its place, `done()` comes when it can be shown."""

    def __init__(
        self,
        make: Callable[[], Page],
        placed: Callable[[Page], object],
        done: Callable[[], None],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._make, self._placed, self._done = make, placed, done
        self.is_over = False  # it was made, or that broke
        self._steps = self._all()
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._next)

    def go_on(self) -> None:
        """Make it, a step in each turn of the event loop."""
        self._timer.start()

    def wait(self) -> None:
        """Another page is wanted first."""
        self._timer.stop()

    def finish(self) -> None:
        """All that is missing, at once."""
        self._timer.stop()
        for _ in self._steps:
            pass
        self._end()

    def _next(self) -> None:
        self._timer.stop()  # one that breaks is not tried for ever
        if next(self._steps, self) is self:
            self._end()
        else:
            self._timer.start()

    def _end(self) -> None:
        self._done()
        self.deleteLater()

    def _all(self) -> Iterator[None]:
        try:
            page = self._make()
            yield
            while page.go_on():
                yield
            self._placed(page)
            yield
            yield from _dressed(page)
        finally:
            self.is_over = True


def _dressed(page: QWidget) -> Iterator[None]:
    """Qt dresses all that is shown when it is shown; what is dressed before costs nothing then."""
    for number, one in enumerate([*shown_with(page)], 1):
        if isValid(one):  # news may have cleared it away between two steps
            one.ensurePolished()
        if number % AT_ONCE == 0:
            yield


def shown_with(widget: QWidget) -> Iterator[QWidget]:
    """It and all inside it that is seen once it is shown, what holds others before those.

    Not by `findChildren`: PySide ties what that finds to the widget, and keeps it as long, with all that has gone.
    """
    yield widget
    for one in widget.children():
        if isinstance(one, QWidget) and not one.isWindow() and not _is_put_away(one):
            yield from shown_with(one)


def _is_put_away(widget: QWidget) -> bool:
    by_us = widget.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide)
    return by_us and widget.isHidden()
