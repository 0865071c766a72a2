"""The Household settings, for the members and their roles, and for leaving the household."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.api.computer import Settings
from app.core.errors import Reason
from app.gui.app.app_context import AppContext
from app.gui.diagnostics.dialogs import open_add_dialog
from app.gui.look import sizes
from app.gui.look.drawing import icon
from app.gui.look.sentences import said
from app.gui.pool import machine_words
from app.gui.pool.household_dialogs import LeaveHouseholdDialog
from app.gui.pool.machine_dialogs import RemoveMachineDialog, RolesDialog
from app.gui.pool.machine_facts import MachineFacts, machines_of, may_change_household
from app.gui.settings.settings_group import Setting, SettingsGroup
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import ValueLabel, label, paragraph
from app.gui.widgets.layouts import clear_layout, column, line, row


class Household(SettingsGroup):
    """The Household settings. Each snapshot updates the list of members."""

    can_reset = False

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Household"))
        self._list = column(gap=0)
        self._shown: tuple[MachineFacts, ...] = ()
        members = QWidget()
        members.setLayout(self._list)
        self.add(
            Setting("", "", members, wide=True, words=self.tr("Members, machines, roles, remove")),
            title=self.tr("Members"),
        )
        self._adds = button(self.tr("Add a machine…"), lambda: open_add_dialog(services, self.window()))
        self._another = Setting(self.tr("Another machine"), "", self._adds)
        self.add(self._another, title=self.tr("Change"))
        self.where = ValueLabel()
        self.add(
            Setting(
                self.tr("Leave the household"),
                self.tr(
                    "Use this if this computer was removed from its household, is a copy of another one, "
                    "or moves to another household. All its pairings end, but models and chats are kept. "
                    "The old identity is saved next to the new one."
                ),
                button(self.tr("Leave…"), self._leave),
                words="reset identity",
            ),
            Setting(
                self.tr("Key of this machine"),
                self.tr("The key proves this machine's identity to the other machines. It never leaves this computer."),
                self.where,
                words="keyring",
            ),
            title=self.tr("Identity"),
        )
        services.pool.changed.connect(self._tell)

    def refresh(self) -> None:
        self._tell()
        self.ask("GET", "/settings", self._tell_keys, answer=Settings)

    def _tell_keys(self, settings: Settings) -> None:
        self.where.setText(storage_sentence(settings.keys_facts))

    def _leave(self) -> None:
        LeaveHouseholdDialog(self.services, self.window(), self._done).open()

    def _tell(self) -> None:
        machines = machines_of(self.services.pool.now)
        if [*map(_face, machines)] == [*map(_face, self._shown)]:
            return
        self._shown = machines
        may = may_change_household(machines)
        self._adds.setEnabled(may)
        by_code = self.tr("Pair another machine with a six-digit code.")
        self._another.set_about(by_code if may else machine_words.not_admin_note(machines))
        clear_layout(self._list)
        for number, machine in enumerate(machines):
            if number:
                self._list.addWidget(line())
            self._list.addWidget(self._line(machine, may=may))

    def _line(self, machine: MachineFacts, *, may: bool) -> QWidget:
        theme = self.services.theme
        picture, side = label(), theme.px(sizes.TITLE)
        picture.setPixmap(icon("computer", theme.colors.muted).pixmap(side, side))
        part = self.tr("This machine") if machine.this else machine_words.state_badge(machine).word
        about = " · ".join([part, machine_words.roles_text(sorted(machine.roles))] if machine.roles else [part])
        texts = row(picture, gap=sizes.M)
        texts.addLayout(column(label(machine.name), paragraph(about, "caption"), gap=0), 1)
        head = QWidget()
        head.setLayout(texts)
        acts = []
        if may and not machine.this:
            acts.append(self._act(self.tr("Permissions…"), RolesDialog, machine))
            acts.append(self._act(self.tr("Remove…"), RemoveMachineDialog, machine))
        box = Beside(head, *acts)
        box.setContentsMargins(0, sizes.S, 0, sizes.S)
        made = QWidget()
        made.setLayout(box)
        return made

    def _act(self, text: str, sheet: type[RolesDialog] | type[RemoveMachineDialog], machine: MachineFacts) -> QWidget:
        made = button(
            text, lambda: sheet(self.services, machine, lambda said: self._done(str(said)), self.window()).open()
        )
        made.setAccessibleName(f"{text.rstrip('…')} {machine.name}")
        return made

    def _done(self, sentence: str) -> None:
        self.told.emit(sentence, "info")


def _face(machine: MachineFacts) -> tuple[object, ...]:
    """Return the facts shown in a machine's row. The list is rebuilt when they change."""
    return machine.id, machine.name, machine.state, machine.roles


def storage_sentence(where: Reason | None) -> str:
    """Return a sentence, without the final period, that says where a secret is stored."""
    text = said(where)
    return text[:1].upper() + text[1:]
