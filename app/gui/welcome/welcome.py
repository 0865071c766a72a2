"""The first run: a few calm steps over the whole window; every one can be skipped, and Back works."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QMainWindow, QRadioButton, QWidget

from app.core.errors import AppError
from app.core.planner.verdict import Word
from app.gui.api.node_client import Call, Json
from app.gui.api.node_state import Link
from app.gui.app import page_names
from app.gui.app.app_context import AppContext
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.accessibility import announce
from app.gui.look.icons import icon
from app.gui.look.sentences import GUIDE
from app.gui.look.theme import set_role
from app.gui.models.details.about_view import about_of
from app.gui.models.starter_card import why
from app.gui.models.verdicts import of_plan
from app.gui.pool import machine_words
from app.gui.pool.household_dialogs import AddSheet
from app.gui.pool.join_dialog import JoinSheet
from app.gui.pool.machine_facts import machines_of, may_change
from app.gui.settings.updates import DailyCheck
from app.gui.this_computer.autostart_switch import AutostartSwitch
from app.gui.welcome.already_here import AlreadyHere
from app.gui.welcome.found_step import FoundStep
from app.gui.welcome.name_step import NameStep
from app.gui.welcome.other_models import OtherModels
from app.gui.welcome.step import Failed, Step, Then
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, column, row, scrolled
from app.gui.widgets.notice import Notice

# Fourth step: another computer, now or later.


class PairStep(Step):
    """One machine is enough, so this can wait."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(
            services,
            self.tr("Do you have another computer?"),
            self.tr("Together they hold larger models. You can also add it later, on the page Pool."),
        )
        self.joined = label("", "good")
        self._which = label("", "section")
        self._first = card(
            self._which,
            paragraph(self.tr("Shows a code to type on the other computer."), "muted"),
            row(button(self.tr("Add a machine…"), self._add), None),
            gap=sizes.S,
        )
        self._other = card(
            label(self.tr("Poolhouse runs on another one already"), "section"),
            paragraph(self.tr("Press “Add a machine” there, and type its code here."), "muted"),
            row(button(self.tr("Join a household…"), self._join), None),
            gap=sizes.S,
        )
        self.away = paragraph(self.tr("Waiting for the background service: pairing begins once it answers."), "muted")
        for part in (self.joined, self.away, self._first, self._other):
            self.content.addWidget(part)
        services.pool.changed.connect(self._tell)
        self._tell()

    def _tell(self) -> None:
        machines = machines_of(self.services.pool.snapshot)
        others = [one.name for one in machines if not one.this]
        words = self.tr("Paired with {names}.").format(names=", ".join(others))
        self.joined.setText(words if others else "")
        self.joined.setVisible(bool(others))
        first, more = self.tr("This is the first one"), self.tr("Add one more")
        self._which.setText(more if others else first)
        self._first.setVisible(may_change(machines))
        self._other.setVisible(not others)
        self.away.setVisible(not self.services.pool.is_there)
        for part in (self._first, self._other):
            part.setEnabled(self.services.pool.is_there)

    def _add(self) -> None:
        AddSheet(self.services, self).open()

    def _join(self) -> None:
        JoinSheet(self.services, self).open()


# Third step: what this computer is for.

KEY, BOTH, LEND = "first_run/role", "both", "lend"


class RoleStep(Step):
    """Use models and lend, or lend only: which page opens first. Lending itself is on This computer."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(
            services,
            self.tr("What is this computer for?"),
            self.tr("Either way its memory helps the others, and you can pause that at any time."),
        )
        self._group = QButtonGroup(self)
        self.both = self._choice(
            machine_words.may(machine_words.USE_AND_LEND),
            self.tr("You chat here. While you do not need its memory, the others may use it."),
        )
        self.lend = self._choice(
            machine_words.may(machine_words.LEND),
            self.tr("Nobody chats here. It opens with what it lends, and to whom."),
        )
        chosen = self.lend if services.preferences.text(KEY, BOTH) == LEND else self.both
        chosen.setChecked(True)
        self.content.addSpacing(sizes.S)
        self.content.addWidget(card(AutostartSwitch(services)))
        self.updates = DailyCheck(services)
        self.content.addWidget(self.updates)

    def entered(self) -> None:
        self.updates.look()
        button = self._group.checkedButton()
        if button is not None:
            button.setFocus()

    def cancel(self) -> None:
        self.updates.end()
        super().cancel()

    def apply(self, then: Then, failed: Failed) -> None:
        self.services.preferences.keep(KEY, LEND if self.lend.isChecked() else BOTH)
        then()

    def _choice(self, title: str, sentence: str) -> QRadioButton:
        option = Option(title, sentence)
        self._group.addButton(option.button)
        self.content.addWidget(option)
        return option.button


class Option(QFrame):
    """A radio button with a sentence, in a card that can be clicked anywhere."""

    def __init__(self, title: str, sentence: str) -> None:
        super().__init__()
        self.button = QRadioButton(title)
        self.button.setAccessibleDescription(sentence)
        self.button.toggled.connect(self._paint)
        told = paragraph(sentence, "muted")
        told.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        told.setContentsMargins(sizes.XL + sizes.S, 0, 0, 0)
        box = column(self.button, told, gap=0)
        box.setContentsMargins(sizes.L, sizes.M, sizes.L, sizes.L)
        self.setLayout(box)
        self._paint()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802  Qt's name
        self.button.setChecked(True)
        self.button.setFocus()
        super().mouseReleaseEvent(event)

    def _paint(self) -> None:
        set_role(self, "option-chosen" if self.button.isChecked() else "option")


# What the last step shows: the built-in model answers at once, and the model that suits this household today is
# offered, never fetched unasked.


class Offer(QWidget):
    """Hidden until there is something to offer; where nothing answers, nothing is said. `wanted` when a person asks
    to see it."""

    wanted = Signal()

    def __init__(self, services: AppContext) -> None:
        super().__init__()
        self._client = services.client
        self._call: Call | None = None
        self.hide()

    def cancel(self) -> None:
        """Nothing more is heard of it."""
        call, self._call = self._call, None
        if call is not None and call.running:
            call.cancel()

    def _none(self, _: object) -> None:
        self._call = None


class Recommendation(Offer):
    def __init__(self, services: AppContext) -> None:
        super().__init__(services)
        self._starter: Json | None = None
        self.title, self.about = label("", "section"), paragraph("")
        self.fetch = paragraph("", "caption")
        show = button(self.tr("Show it on the page Models"), self.wanted.emit)
        inner = card(self.title, self.about, self.fetch, row(show, None), gap=sizes.S)
        self.setLayout(column(inner))

    def look(self) -> None:
        """Ask once."""
        if self._starter is None and self._call is None:
            self._call = self._client.get("/starter", self._named, self._none)

    def _named(self, answer: Json) -> None:
        self._call = None
        self._starter = answer["starter"]
        if self._starter is not None:
            self._call = self._client.get("/catalogue", self._listed, self._none)

    def _listed(self, answer: Json) -> None:
        self._call, starter = None, self._starter
        assert starter is not None
        facts = next(one for one in answer["models"] if one["id"] == starter["id"])
        self.title.setText(self.tr("Recommended: {name}").format(name=starter["name"]))
        self.about.setText(f"{about_of(facts)} {why(starter)}")
        size = formats.size(starter["size_bytes"])
        self.fetch.setText(self.tr("{size} download from huggingface.co.").format(size=size))
        self.show()


class ReadyStep(Step):
    """Says what is there now and what comes next."""

    def __init__(self, services: AppContext, others: OtherModels) -> None:
        super().__init__(services, self.tr("Ready"), self.tr("The first answer needs no download and no network."))
        about = self.tr(
            "A small model for learning the app is built in. Ask it how Poolhouse works; "
            "for everything else, load a larger one on the page Models."
        )
        guide = card(label(self.tr("The Guide"), "section"), paragraph(about), gap=sizes.S)
        self.content.addWidget(guide)
        self._others = others
        self.here, self.recommended = AlreadyHere(others, is_last=True), Recommendation(services)
        for one in (self.here, self.recommended):
            one.wanted.connect(lambda: self.leave.emit(page_names.MODELS))
            self.content.addWidget(one)

    def entered(self) -> None:
        self._others.look()
        self.recommended.look()

    def cancel(self) -> None:
        self.recommended.cancel()
        super().cancel()

    @property
    def next_words(self) -> str:
        return self.tr("Ask the Guide") if self._asks else self.tr("Finish")

    @property
    def leads_to(self) -> str:
        return f"{page_names.CHAT}/{GUIDE}" if self._asks else ""

    @property
    def _asks(self) -> bool:
        """Who only lends does not, and a guest is answered by others."""
        lends = self.services.preferences.text(KEY, BOTH) == LEND
        return not lends and self.services.pool.hosts is None


# The built-in model is loaded while the first steps are gone through, so that the first answer waits for no load.


class GuideAhead(QObject):
    """Nobody asked for it: where anything speaks against it, nothing is loaded, and nothing is said."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services.pool)  # the first steps are gone before it is through
        self._services, self._pool = services, services.pool
        self._is_asked = False

    def begin(self) -> None:
        """As soon as a node is there. Who only lends answers nothing here."""
        if self._services.preferences.text(KEY, BOTH) == LEND:
            self._over()
            return
        self._pool.changed.connect(self._look)
        self._look()

    @property
    def _is_wanted(self) -> bool:
        """Nothing is loaded or on its way, and no host answers in its place."""
        return not self._pool.models and self._pool.hosts is None

    def _look(self) -> None:
        if self._is_asked or not self._pool.is_there or self._pool.link is not Link.THERE:
            return
        self._is_asked = True
        if not self._is_wanted:
            self._over()
            return
        body = {"model": GUIDE, "measure": False}
        self._services.client.post("/plan", body, self._planned, self._over)

    def _planned(self, plan: Json) -> None:
        """Only where memory is left beside it."""
        if of_plan(plan).verdict.word is Word.FITS and self._is_wanted:
            self._services.client.post("/load", {"model": GUIDE}, self._over, self._over)
        else:
            self._over()

    def _over(self, _: object = None) -> None:
        self.deleteLater()


DONE = "first_run/done"
WIDTH, HEIGHT = 560, 620


class _OneStep(QWidget):
    """As high as the step in front: a stack would be as high as its highest."""

    def __init__(self, steps: Sequence[QWidget]) -> None:
        super().__init__()
        set_role(self, "clear")
        self._steps, self.index = steps, 0
        box = column(*steps)
        box.setContentsMargins(0, 0, sizes.M, 0)  # room for the scroll bar of large text
        self.setLayout(box)
        self.show_only(0)

    def show_only(self, index: int) -> None:
        """Hide the others."""
        self.index = index
        for number, step in enumerate(self._steps):
            step.setVisible(number == index)


class Welcome(QWidget):
    """Covers `window` until the last step, or until it is skipped."""

    def __init__(self, services: AppContext, window: QMainWindow) -> None:
        super().__init__(window)
        self._services, self._window = services, window
        set_role(self, "page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr("First steps"))
        name, others = NameStep(services), OtherModels(services, self)
        name.late.refused.connect(self._failed)
        self._steps: list[Step] = [
            name,
            FoundStep(services, others),
            RoleStep(services),
            PairStep(services),
            ReadyStep(services, others),
        ]
        self._stack = _OneStep(self._steps)
        for step in self._steps:
            step.leave.connect(self.end)
            step.judged.connect(self._judge)
        self.notice = Notice(services.theme)
        self._where = label("", "caption")
        self._back = button(self.tr("Back"), self._go_back)
        self._skip = button(self.tr("Skip"), self.skip, "link")
        self._next = button("", self._apply, "primary")
        self._next.setDefault(True)
        self._fill()
        services.pool.link_changed.connect(self._tell_link)
        window.installEventFilter(self)

    def begin(self) -> None:
        """Show the first step."""
        below = self._window.centralWidget()
        if below is not None:
            below.hide()  # nothing under it takes the keyboard
        self.setGeometry(self._window.rect())
        self.show()
        self.raise_()
        self._show(0)
        self._tell_link()
        GuideAhead(self._services).begin()

    def end(self, page: str = "") -> None:
        """It was gone through, or skipped: never shown again by itself. `page`: where to go."""
        services, window = self._services, self._window
        services.preferences.keep(DONE, True)
        window.removeEventFilter(self)
        for step in self._steps:
            step.cancel()
        below = window.centralWidget()
        if below is not None:
            below.show()
        self.hide()
        self.deleteLater()
        lends = services.preferences.text(KEY, BOTH) == LEND
        if lends and services.pool.model(GUIDE) is not None:  # it answers nobody here
            services.client.post("/unload", {"model": GUIDE}, lambda _: None)
        services.go(page or (page_names.COMPUTER if lends else page_names.CHAT))

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
        """On to the next step, whatever was typed."""
        self._go_on()

    # inside

    def _paint(self) -> None:
        side = self._services.theme.px(sizes.XL)
        picture = icon("app", self._services.theme.colours.accent)
        self._mark.setPixmap(picture.pixmap(side, side))

    def _fill(self) -> None:
        theme = self._services.theme
        self._mark = label()
        theme.changed.connect(self._paint)
        self._paint()
        leave = button(self.tr("End the introduction"), self.end, "link")
        # above: there it stays, whatever the buttons below say
        head = row(self._mark, label("Poolhouse", "section"), self._where, None, leave, gap=sizes.S)
        feet = row(self._back, None, self._skip, self._next, gap=sizes.S)
        for one in (head, feet):  # as far to the right as the steps, which keep room for a bar
            one.setContentsMargins(0, 0, sizes.M, 0)
        middle = QWidget()
        middle.setMaximumSize(theme.px(WIDTH), theme.px(HEIGHT))
        inside = column(head, self.notice, scrolled(self._stack), gap=sizes.L)
        inside.setStretch(2, 1)  # large text on a small screen: only the step itself scrolls
        inside.addLayout(feet)
        middle.setLayout(inside)
        across = row(None, middle, None)
        across.setStretch(1, 100)  # up to its greatest size
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
        """The one in front."""
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
        self._next.setText(step.next_words)
        self._judge()
        words = self.tr("Step {number} of {many}").format(number=number + 1, many=len(self._steps))
        self._where.setText(words)
        self._next.setFocus()
        step.entered()
        announce(self, f"{words}. {step.title.text()}. {step.sentence.text()}")

    def _judge(self) -> None:
        self._next.setEnabled(self.step.may_go_on)

    def _apply(self) -> None:
        self.notice.clear()
        self._next.setEnabled(False)
        self._steps[self._number].apply(self._go_on, self._failed)

    def _go_on(self) -> None:
        self._steps[self._number].cancel()
        if self._number + 1 < len(self._steps):
            self._show(self._number + 1)
        else:
            self.end(self.step.leads_to)

    def _go_back(self) -> None:
        self._steps[self._number].cancel()
        if self._number:
            self._show(self._number - 1)

    def _failed(self, error: AppError) -> None:
        self._judge()
        self.notice.fail(error, self.end)

    def _tell_link(self) -> None:
        """The node cannot be started: that is said here too, with what to press."""
        pool = self._services.pool
        if pool.link is Link.AWAY and pool.problem:
            again = (self.tr("Start again"), pool.try_again)
            self.notice.say(pool.problem, "error", again, closable=False)
        elif pool.link is Link.THERE:
            self.notice.clear()
