"""The first run, a few steps that cover the whole window. The user can skip a step or go back."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QMainWindow, QWidget

from app.api.plans import Plan
from app.core.errors import AppError
from app.core.planner.verdict import VerdictWord
from app.gui.api.node_state import Link
from app.gui.app import navigation
from app.gui.app.app_context import AppContext
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.drawing import icon
from app.gui.look.sentences import GUIDE
from app.gui.look.theme import set_role
from app.gui.models.verdicts import of_plan
from app.gui.welcome.other_models import OtherModels
from app.gui.welcome.steps import BOTH, LEND, ROLE_KEY, HardwareStep, NameStep, PairStep, ReadyStep, RoleStep, Step
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column, row, scrolled
from app.gui.widgets.notice import Notice

DONE_KEY = "first_run/done"
WIDTH, HEIGHT = 560, 620


class GuidePreload(QObject):
    """A helper that loads the built-in model during the first run, so that the first answer starts quickly.

    Errors are not shown, because the user did not request this.
    """

    def __init__(self, services: AppContext) -> None:
        super().__init__(services.pool)  # its parent is the pool, because it outlives the first run
        self._services, self._pool = services, services.pool
        self._is_asked = False

    def begin(self) -> None:
        """Load the model once the node is running, unless this computer only lends."""
        if self._services.preferences.text(ROLE_KEY, BOTH) == LEND:
            self._finish()
            return
        self._pool.changed.connect(self._pool_changed)
        self._pool_changed()

    @property
    def _is_wanted(self) -> bool:
        """Return whether no model is loaded or loading, and no other host answers for this machine."""
        return not self._pool.now.models and self._pool.now.hosts is None

    def _pool_changed(self) -> None:
        if self._is_asked or not self._pool.is_there or self._pool.link is not Link.THERE:
            return
        self._is_asked = True
        if not self._is_wanted:
            self._finish()
            return
        body = {"model": GUIDE, "measure": False}
        self._services.client.post("/plan", body, self._planned, self._finish, answer=Plan)

    def _planned(self, plan: Plan) -> None:
        """Load the model if it fits with memory to spare."""
        if of_plan(plan).verdict.word is VerdictWord.FITS and self._is_wanted:
            self._services.client.post("/load", {"model": GUIDE}, self._finish, self._finish)
        else:
            self._finish()

    def _finish(self, _: object = None) -> None:
        self.deleteLater()


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
    """The first run. It covers `window` until the user completes the last step or skips the introduction."""

    def __init__(self, services: AppContext, window: QMainWindow) -> None:
        super().__init__(window)
        self._services, self._window = services, window
        set_role(self, "page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr("First steps"))
        name, other_models = NameStep(services), OtherModels(services, self)
        name.pending_name.refused.connect(self._failed)
        self._steps: list[Step] = [
            name,
            HardwareStep(services, other_models),
            RoleStep(services),
            PairStep(services),
            ReadyStep(services, other_models),
        ]
        self._stack = _StepStack(self._steps)
        for step in self._steps:
            step.leave.connect(self.end)
            step.validity_changed.connect(self._update_next)
        self.notice = Notice(services.theme)
        self._where = label("", "caption")
        self._back = button(self.tr("Back"), self._go_back)
        self._skip = button(self.tr("Skip"), self.skip, "link")
        self._next = button("", self._apply, "primary")
        self._next.setDefault(True)
        self._fill()
        services.pool.link_changed.connect(self._show_link)
        window.installEventFilter(self)

    def begin(self) -> None:
        """Show the first step."""
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
        """End the first run for good and show a page of the window. The default page depends on the chosen role."""
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
            self._next.click()
        elif event.key() == Qt.Key.Key_Escape:
            self._go_back()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if watched is self._window and event.type() == QEvent.Type.Resize:
            self.setGeometry(self._window.rect())
        return super().eventFilter(watched, event)

    def skip(self) -> None:
        """Discard the input and continue with the next step."""
        self._show_next()

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
        leave = button(self.tr("Skip the introduction"), self.end, "link")
        # placed at the top, so that it does not move when the buttons below change
        head = row(self._mark, label("Poolhouse", "section"), self._where, None, leave, gap=sizes.S)
        feet = row(self._back, None, self._skip, self._next, gap=sizes.S)
        for line in (head, feet):  # as wide as the steps, which reserve room for a scroll bar
            line.setContentsMargins(0, 0, sizes.M, 0)
        middle = QWidget()
        middle.setMaximumSize(theme.px(WIDTH), theme.px(HEIGHT))
        inside = column(head, self.notice, scrolled(self._stack), gap=sizes.L)
        inside.setStretch(2, 1)  # if large text does not fit the screen, only the step scrolls
        inside.addLayout(feet)
        middle.setLayout(inside)
        across = row(None, middle, None)
        across.setStretch(1, 100)  # takes the available width, up to its maximum
        box = column(None, gap=0)
        box.addLayout(across, 100)
        box.addStretch(1)
        box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.XL)
        self.setLayout(box)

    @property
    def _number(self) -> int:
        return self._stack.index

    @property
    def step(self) -> Step:
        """The current step."""
        return self._steps[self._number]

    @property
    def is_last(self) -> bool:
        return self._number == len(self._steps) - 1

    def _show(self, number: int) -> None:
        step = self._steps[number]
        self.notice.clear()
        self._stack.show_only(number)
        last = number == len(self._steps) - 1
        self._back.setVisible(number > 0)
        self._skip.setVisible(not last)
        self._next.setText(step.next_label)
        self._update_next()
        words = self.tr("Step {number} of {many}").format(number=number + 1, many=len(self._steps))
        self._where.setText(words)
        self._next.setFocus()
        step.entered()
        announce(self, f"{words}. {step.title.text()}. {step.sentence.text()}")

    def _update_next(self) -> None:
        self._next.setEnabled(self.step.is_valid)

    def _apply(self) -> None:
        self.notice.clear()
        self._next.setEnabled(False)
        self._steps[self._number].apply(self._show_next, self._failed)

    def _show_next(self) -> None:
        self._steps[self._number].cancel()
        if self._number + 1 < len(self._steps):
            self._show(self._number + 1)
        else:
            self.end(self.step.next_page)

    def _go_back(self) -> None:
        self._steps[self._number].cancel()
        if self._number:
            self._show(self._number - 1)

    def _failed(self, error: AppError) -> None:
        self._update_next()
        self.notice.fail(error, self.end)

    def _show_link(self) -> None:
        """Report that the node could not be started, and offer to retry. Clear the notice once the node is running."""
        pool = self._services.pool
        if pool.link is Link.AWAY and pool.problem:
            again = (self.tr("Start again"), pool.try_again)
            self.notice.say(pool.problem, "error", again, closable=False)
        elif pool.link is Link.THERE:
            self.notice.clear()
