"""Dialogs for adding a machine to the household with a pairing code, and for leaving the household."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.api.snapshot import MachineRef
from app.core.errors import AppError
from app.gui.app.app_context import AppContext, restart
from app.gui.app.node_dialog import Sheet
from app.gui.look.accessibility import announce
from app.gui.pool import machine_words
from app.gui.pool.code_panel import CodePanel, joined_words, lent_by
from app.gui.pool.machine_facts import machines_of
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import paragraph

NOT_ADMIN = "not_admin"


class AddMachineDialog(Sheet):
    """A dialog that shows a pairing code to enter on another machine. Closing the dialog closes the pairing window."""

    def __init__(self, services: AppContext, parent: QWidget) -> None:
        super().__init__(services, "", "", parent)
        self.setWindowTitle(self.tr("Add a machine"))
        self.heading.setText(self.tr("Add a machine"))
        self.sentence.setText(
            self.tr("Open Poolhouse on the machine you want to add, click “Join a household” and enter this code.")
        )
        self.sentence.show()
        self._joined: MachineRef | None = None
        self._gained = 0  # the memory that it lends; kept as it was first reported
        self.panel = panel = CodePanel(services)
        self.role, self.left, self.address = panel.role, panel.left, panel.address
        panel.shown.connect(self._shown)
        panel.guessed.connect(self._guessed)
        panel.paired.connect(self._paired)
        panel.ended.connect(self._ended)
        self.add(panel)
        self.again = button(self.tr("New code"), self._new_code, "primary")
        self._close = self.offer(self.tr("Cancel"), self.again)
        self.finished.connect(panel.close_window)
        services.pool.changed.connect(self._show_memory)
        self.open_window()

    @property
    def code(self) -> str:
        return self.panel.code

    def open_window(self) -> None:
        """Open a pairing window and show its code."""
        self.notice.clear()
        self.again.hide()
        self.panel.open_window()

    def came_back(self) -> None:
        """Explain that the code is no longer valid, because the node has restarted. The user can request a new one."""
        if self.panel.isHidden():
            return
        self.panel.forget()
        gone = self.tr("The background service was restarted, so this code no longer works.")
        self.notice.say(gone, closable=False)
        self.again.show()

    def _new_code(self) -> None:
        self.open_window()

    def _shown(self) -> None:
        self.notice.clear()  # a notice about a wrong code is about an earlier one
        self.fit()

    def _guessed(self, words: str) -> None:
        self.notice.say(words, "warning", closable=False)
        self.fit()

    def _paired(self, machine: MachineRef) -> None:
        self._joined = machine
        self.notice.clear()  # clear the notice about an earlier wrong code
        self.panel.hide()
        self.sentence.hide()
        self._show_memory()
        self._close.setText(self.tr("Done"))
        self._close.setFocus()
        announce(self, self.heading.text())
        self.fit()

    def _show_memory(self) -> None:
        """Show the memory that the new machine adds. It becomes known shortly after the machine has joined."""
        if self._joined is not None:
            self._gained = self._gained or lent_by(self.services.pool.now, self._joined.id)
            self.heading.setText(joined_words(self._joined.name, self._gained))

    def _ended(self, error: AppError) -> None:
        """Explain why there is no code: it expired, too many wrong codes were entered, or creating one failed."""
        self.panel.forget()
        self._close.setText(self.tr("Close"))
        if error.reason.code != NOT_ADMIN or not self._name_who_may():
            self.fail(error)
            self.again.show()

    def _name_who_may(self) -> bool:
        """Show which machines may add others, because a new code would not help.

        Return False if no such machine is known.
        """
        machines = machines_of(self.services.pool.now)
        if not any("admin" in machine.roles and not machine.this for machine in machines):
            return False
        self.panel.hide()
        self.notice.say(machine_words.not_admin_note(machines), "error", closable=False)
        self.fit()
        return True


class LeaveHouseholdDialog(Sheet):
    """A dialog that makes this machine leave its household.

    Leaving needs no other machine and works even if the node is unreachable. `done` is called with a sentence about
    the result.
    """

    needs_node = False

    def __init__(self, services: AppContext, parent: QWidget, done: Callable[[str], object] = lambda _: None) -> None:
        sentence = self.tr(
            "This removes all pairings of this machine and gives it a new identity. To join a household again, it "
            "needs a new code."
        )
        super().__init__(services, self.tr("Leave the household"), sentence, parent)
        self._done = done
        self.add(
            paragraph(
                self.tr(
                    "Your models, chats and settings are kept. The other machines show this one as offline until one "
                    "of them removes it. The background service restarts, which stops any answer in progress."
                )
            )
        )
        self.act = button(self.tr("Leave the household"), self.leave, "danger")
        self.offer(self.tr("Cancel"), self.act)

    def leave(self) -> None:
        try:
            self.services.launcher.leave()
        except AppError as error:
            self.fail(error)
            return
        restart(self.services)
        self._done(self.tr("This machine has left its household. It will be ready again in a few seconds."))
        self.accept()
