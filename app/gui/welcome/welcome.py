"""The first run, a few pages that cover the whole window.

They are about this computer, the others, and a model.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QMainWindow, QWidget

from app.core.errors import AppError
from app.gui.api.node_state import Link
from app.gui.app import navigation
from app.gui.app.app_context import AppContext
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.drawing import icon
from app.gui.look.sentences import GUIDE
from app.gui.look.theme import set_role
from app.gui.welcome.first_page import FirstPage
from app.gui.welcome.guide_preload import GuidePreload
from app.gui.welcome.model_page import ModelPage
from app.gui.welcome.step import BOTH, LEND, ROLE_KEY, Step
from app.gui.welcome.together_page import TogetherPage
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column, row, scrolled
from app.gui.widgets.notice import Notice

DONE_KEY = "first_run/done"
WIDTH, HEIGHT = 680, 760


class _StepStack(QWidget):
    """A stack as tall as the visible step. A QStackedWidget would be as tall as its tallest step."""

    def __init__(self, steps: Sequence[QWidget]) -> None:
        super().__init__()
        set_role(self, "clear")
        self._steps, self.index = steps, 0
        box = column(*steps)
        box.setContentsMargins(0, 0, sizes.M, 0)  # room for a scroll bar, which large text may need
        self.setLayout(box)
        self.show_only(0)

    def show_only(self, index: int) -> None:
        """Show this step and hide the others."""
        self.index = index
        for number, step in enumerate(self._steps):
            step.setVisible(number == index)


class Welcome(QWidget):
    """The first run. It covers `window` until the user finishes or skips it."""

    def __init__(self, services: AppContext, window: QMainWindow) -> None:
        super().__init__(window)
        self._services, self._window = services, window
        set_role(self, "page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr("First steps"))
        first = FirstPage(services)
        first.pending_name.refused.connect(self._failed)
        self.notice = Notice(services.theme)
        self._steps: list[Step] = [first, TogetherPage(services), ModelPage(services)]
        self._stack = _StepStack(self._steps)
        self._where = label("", "caption")
        self._back = button(self.tr("Back"), self._go_back, "link")
        self._quiet = button("", self._press_quiet, "link")
        self._main = button("", self._press_main, "primary")
        self._main.setDefault(True)
        for step in self._steps:
            step.left.connect(self.end)
            step.finished.connect(self.show_next)
            step.changed.connect(self._update_buttons)
            step.moved.connect(self._move_focus)
            step.failed.connect(self._failed)
            step.retried.connect(self.notice.clear)
        self._fill()
        services.pool.changed.connect(self._update_buttons)
        services.pool.link_changed.connect(self._show_link)
        window.installEventFilter(self)

    def begin(self) -> None:
        """Show the first page."""
        below = self._window.centralWidget()
        if below is not None:
            below.hide()  # keeps the keyboard focus away from the covered widgets
        self.setGeometry(self._window.rect())
        self.show()
        self.raise_()
        self._show(0)
        self._show_link()
        GuidePreload(self._services).begin()

    def end(self, page: str = "") -> None:
        """End the first run permanently and show a page of the window.

        The default page depends on the chosen role.
        """
        services, window = self._services, self._window
        services.preferences.keep(DONE_KEY, True)
        window.removeEventFilter(self)
        for step in self._steps:
            step.cancel()
        below = window.centralWidget()
        if below is not None:
            below.show()
        self.hide()
        self.deleteLater()
        lends = services.preferences.text(ROLE_KEY, BOTH) == LEND
        # the model was preloaded, but nobody will chat on this computer
        if lends and services.pool.now.model(GUIDE) is not None:
            services.client.post("/unload", {"model": GUIDE}, lambda _: None)
        services.go(page or (navigation.COMPUTER if lends else navigation.CHAT))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._main.click()
        elif event.key() == Qt.Key.Key_Escape:
            self._go_back()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if watched is self._window and event.type() == QEvent.Type.Resize:
            self.setGeometry(self._window.rect())
        return super().eventFilter(watched, event)

    def show_next(self) -> None:
        """Show the next page, or end after the last one. Input on the current page is not applied."""
        self.step.cancel()
        if self.is_last:
            self.end()
        else:
            self._show(self._stack.index + 1)

    @property
    def step(self) -> Step:
        """The current page."""
        return self._steps[self._stack.index]

    @property
    def is_last(self) -> bool:
        """Return whether this is the last page. A computer that only lends needs no model."""
        return self._stack.index >= len(self._steps) - (2 if self.step.lends_only else 1)

    # Internals

    def _paint(self) -> None:
        side = self._services.theme.px(sizes.XL)
        picture = icon("app", self._services.theme.colors.accent)
        self._mark.setPixmap(picture.pixmap(side, side))

    def _fill(self) -> None:
        theme = self._services.theme
        self._mark = label()
        theme.changed.connect(self._paint)
        self._paint()
        head = row(self._mark, label("Poolhouse", "section"), None, self._where, gap=sizes.S)
        feet = Flow(self._back, self._quiet, self._main, gap=sizes.M, right_from=1)
        self._area = scrolled(self._stack)
        for line in (head, feet):  # as wide as the pages, which reserve room for a scroll bar
            line.setContentsMargins(0, 0, sizes.M, 0)
        middle = QWidget()
        middle.setMaximumSize(theme.px(WIDTH), theme.px(HEIGHT))
        inside = column(head, self.notice, self._area, gap=sizes.L)
        inside.setStretch(2, 1)  # if large text does not fit the screen, only the page scrolls
        inside.addLayout(feet)
        middle.setLayout(inside)
        across = row(None, middle, None)
        across.setStretch(1, 100)  # takes the available width, up to its maximum
        box = column(None, gap=0)
        box.addLayout(across, 100)
        box.addStretch(1)
        box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.XL)
        self.setLayout(box)

    def _show(self, number: int) -> None:
        step = self._steps[number]
        self.notice.clear()
        self._stack.show_only(number)
        words = self.tr("{number} of {many}").format(number=number + 1, many=len(self._steps))
        self._where.setText(words)
        step.entered()
        self._update_buttons()
        self._move_focus()
        announce(self, f"{words}. {step.title.text()}. {step.sentence.text()}")

    def _update_buttons(self) -> None:
        step = self.step
        main, quiet = step.main_label, step.quiet_label
        had_focus = self._main.hasFocus() or self._quiet.hasFocus()
        self._main.setText(main)
        self._main.setVisible(bool(main))
        self._main.setEnabled(step.main_enabled)
        self._quiet.setText(quiet)
        self._quiet.setVisible(bool(quiet))
        self._back.setVisible(step.can_go_back)
        if had_focus and not (self._main.hasFocus() or self._quiet.hasFocus()):
            (self._main if main else self._quiet).setFocus()

    def _move_focus(self) -> None:
        """Move the keyboard focus, and then the view, to where the user will continue."""
        step = self.step
        QTimer.singleShot(0, self, self._scroll)
        (step.first_focus or (self._main if step.main_label and step.main_enabled else self._quiet)).setFocus()

    def _scroll(self) -> None:
        part = self.step.in_view
        if part is not None:
            self._area.ensureWidgetVisible(part, 0, 0)
        else:
            self._area.verticalScrollBar().setValue(0)

    def _press_main(self) -> None:
        if self._main.isVisible():  # Enter clicks a hidden button, too
            self.step.press_main()

    def _press_quiet(self) -> None:
        self.step.press_quiet()

    def _go_back(self) -> None:
        if not self.step.can_go_back:
            return
        self.step.cancel()
        self._show(self._stack.index - 1)

    def _failed(self, error: AppError) -> None:
        self._update_buttons()
        self.notice.fail(error, self.end)

    def _show_link(self) -> None:
        """Report that the node could not be started, and offer to retry. Clear the notice once the node is running."""
        pool = self._services.pool
        if pool.link is Link.AWAY and pool.problem:
            again = (self.tr("Start again"), pool.try_again)
            self.notice.say(pool.problem, "error", again, closable=False)
        elif pool.link is Link.THERE:
            self.notice.clear()
