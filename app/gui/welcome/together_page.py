"""The second page of the first run, on which other computers join this one or this one joins them."""

from __future__ import annotations

from enum import Enum, auto

from PySide6.QtWidgets import QWidget

from app.api.responses import JoinResponse
from app.api.snapshot import MachineRef
from app.core.errors import AppError
from app.gui.api.node_state import Link
from app.gui.app.app_context import AppContext
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.pool.code_panel import CodePanel, joined_words, lent_by
from app.gui.pool.join_form import JoinForm, joined_household_words, lent_by_others, renamed_words
from app.gui.pool.machine_facts import machines_of, may_change_household, strangers_of
from app.gui.welcome.household_picture import HouseholdPicture
from app.gui.welcome.step import Step
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, row


class Mode(Enum):
    """The part of pairing that the page shows."""

    START = auto()
    ADDING = auto()  # this computer shows a code
    JOINING = auto()  # the user enters the code of another computer
    PAIRED = auto()


class TogetherPage(Step):
    """The page that draws the household and nearby computers, and pairs them."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, "", "")
        self.mode = Mode.START
        self._refuses = False  # the user does not want to join, although another computer shows a code
        self._machine: MachineRef | None = None  # the computer that has joined here
        self._peer = ""  # the computer whose household was joined
        self._gained = 0  # the memory that pairing added; kept as it was first reported
        self._renamed = ""
        self.picture = HouseholdPicture(services)
        self.good, self.about = label("", "verdict-good"), paragraph("", "muted")
        self.good.setWordWrap(True)
        self._way = paragraph("")
        self.how = card(
            self._way,
            row(button(self.tr("Enter a code from another computer"), self._enter_code, "inline"), None),
            gap=sizes.S,
        )
        self.away = paragraph(
            self.tr("Waiting for the background service. Pairing will begin when it responds."), "muted"
        )
        self.panel, self.form = CodePanel(services), JoinForm(services, brief=True)
        self._adding = card(paragraph(self.tr("Enter this code on the other computer.")), self.panel)
        self._who = paragraph("", "section")
        self._joining = card(self._who, self.form, gap=sizes.S)
        for part in (self.picture, self.good, self.about, self.away, self.how, self._adding, self._joining):
            self.content.addWidget(part)
        self._connect()
        self._show()

    def _connect(self) -> None:
        self.panel.shown.connect(self.retried)
        self.panel.shown.connect(self.moved)
        self.panel.guessed.connect(self._guessed)
        self.panel.paired.connect(self._paired)
        self.panel.ended.connect(self._code_ended)
        self.form.changed.connect(self._form_changed)
        self.form.joined.connect(self._joined)
        self.form.failed.connect(self.failed)
        self.services.pool.changed.connect(self._pool_changed)
        self.services.pool.link_changed.connect(self._link_changed)

    # Buttons

    @property
    def main_label(self) -> str:
        match self.mode:
            case Mode.START:
                return self.tr("Show a code") if self._may_add else self._onward
            case Mode.ADDING:
                return "" if self.panel.is_open else self.tr("New code")
            case Mode.JOINING:
                return self.tr("Joining…") if self.form.is_busy else self.tr("Join")
            case Mode.PAIRED:
                return self._onward

    @property
    def main_enabled(self) -> bool:
        if self.mode is Mode.JOINING:
            return self.form.is_ready
        return self.mode is Mode.PAIRED or self.services.pool.is_there or not self._may_add

    @property
    def quiet_label(self) -> str:
        match self.mode:
            case Mode.START:
                return self.tr("Only this computer for now") if self._may_add else ""
            case Mode.PAIRED:
                return self.tr("Add another computer") if self._may_add else ""
            case _:
                return self.tr("Cancel")

    @property
    def can_go_back(self) -> bool:
        return self.mode is Mode.START

    @property
    def first_focus(self) -> QWidget | None:
        return self.form.first_field if self.mode is Mode.JOINING else None

    @property
    def in_view(self) -> QWidget | None:
        return {Mode.ADDING: self._adding, Mode.JOINING: self._joining, Mode.PAIRED: self.good}.get(self.mode)

    def press_main(self) -> None:
        match self.mode:
            case Mode.START if self._may_add:
                self._show_code()
            case Mode.ADDING:
                if not self.panel.is_open:  # a second code would end the wait for this one
                    self._show_code()
            case Mode.JOINING:
                self.form.join()
            case _:
                self.finished.emit()

    def press_quiet(self) -> None:
        match self.mode:
            case Mode.START:
                self.finished.emit()
            case Mode.PAIRED:
                self._show_code()
            case _:
                self._refuses = True
                self._stop()
                self._go(Mode.PAIRED if self._is_paired else Mode.START)

    def entered(self) -> None:
        if self.mode in (Mode.START, Mode.PAIRED):
            self.mode = Mode.PAIRED if self._is_paired else Mode.START
        self.picture.refresh()
        self._pool_changed()
        self._show()

    def cancel(self) -> None:
        """Close the pairing window, because nobody can see its code anymore."""
        self._stop()
        if self.mode in (Mode.ADDING, Mode.JOINING):
            self.mode = Mode.START

    # Internals

    @property
    def _onward(self) -> str:
        return self.tr("Finish") if self.lends_only else self.tr("Continue")

    @property
    def _may_add(self) -> bool:
        return may_change_household(machines_of(self.services.pool.now))

    @property
    def _is_paired(self) -> bool:
        return any(not machine.this for machine in self.services.pool.now.machines.values())

    def _stop(self) -> None:
        self.panel.close_window()
        self.form.cancel()
        self.retried.emit()

    def _go(self, mode: Mode) -> None:
        self.mode = mode
        self._show()
        self.changed.emit()
        self.moved.emit()

    def _show_code(self) -> None:
        self.retried.emit()
        self.panel.open_window()
        self._go(Mode.ADDING)

    def _enter_code(self) -> None:
        self._go(Mode.JOINING)

    def _pool_changed(self) -> None:
        """Redraw the household. If another computer starts to show a code, ask the user for that code."""
        shows_code = any(stranger.pairing_address for stranger in strangers_of(self.services.pool.now))
        self._refuses = self._refuses and shows_code
        if self.mode is Mode.START and self.isVisible():
            if self._is_paired:
                self._go(Mode.PAIRED)
            elif shows_code and not self._refuses:
                self._go(Mode.JOINING)
        self._show()

    def _link_changed(self) -> None:
        if self.mode is Mode.ADDING and self.services.pool.link is not Link.THERE:
            self.panel.forget()  # the code is gone together with the node
            self._go(Mode.START)
        self._show()
        self.changed.emit()

    def _form_changed(self) -> None:
        if self.form.is_busy:
            self.retried.emit()
        self._show()
        self.changed.emit()

    def _guessed(self, words: str) -> None:
        self.about.setText(words)
        self.about.show()

    def _code_ended(self, error: AppError) -> None:
        self.changed.emit()
        self.failed.emit(error)

    def _paired(self, machine: MachineRef) -> None:
        self._machine, self._peer, self._gained = machine, "", 0
        self._go(Mode.PAIRED)
        announce(self, self.good.text())

    def _joined(self, answer: JoinResponse) -> None:
        self._machine, self._peer, self._gained = None, answer.machine.name, 0
        self._renamed = renamed_words(answer)
        self._go(Mode.PAIRED)
        announce(self, self.good.text())

    def _show(self) -> None:
        pool = self.services.pool
        self.picture.show_household(pool.now, pool.now.node.name or self.tr("This computer"))
        self._show_heading()
        self.how.setVisible(self.mode is Mode.START and pool.is_there)
        self.away.setVisible(not pool.is_there)
        self._adding.setVisible(self.mode is Mode.ADDING)
        self._joining.setVisible(self.mode is Mode.JOINING)
        self._who.setText(self._whose_code())
        self.good.setText(self._success() if self.mode is Mode.PAIRED else "")
        self.good.setVisible(bool(self.good.text()))
        if self.mode is not Mode.ADDING:
            self.about.setText(self._renamed if self.mode is Mode.PAIRED else "")
        self.about.setVisible(bool(self.about.text()))

    def _show_heading(self) -> None:
        if self.mode is Mode.PAIRED:
            self.title.setText(self.tr("Your household"))
            self.sentence.setText(self.tr("Your computers can now run models together."))
            return
        self.title.setText(self.tr("Do you have another computer?"))
        self.sentence.setText(
            self.tr(
                "Together, your computers can run larger models. You can also add computers later on the Pool page."
            )
        )
        if self.services.pool.now.strangers:
            self._way.setText(
                self.tr(
                    "A nearby computer is also running Poolhouse. Show a code on one of the two, then "
                    "enter it on the other."
                )
            )
        else:
            self._way.setText(
                self.tr(
                    "Open Poolhouse on the other computer as well. Show a code on one of the two, then "
                    "enter it on the other."
                )
            )

    def _whose_code(self) -> str:
        shown = self.form.shown
        if len(shown) == 1 and shown[0].name:
            return self.tr("{name} is showing a code. Enter it here.").format(name=shown[0].name)
        return self.tr("Enter the code shown on the other computer.")

    def _success(self) -> str:
        now = self.services.pool.now
        if self._peer:
            self._gained = self._gained or lent_by_others(now)
            return joined_household_words(self._peer, self._gained)
        if self._machine is not None:
            self._gained = self._gained or lent_by(now, self._machine.id)
            return joined_words(self._machine.name, self._gained)
        names = [machine.name for machine in now.sorted_machines if not machine.this]
        return self.tr("Paired with {names}.").format(names=", ".join(names))
