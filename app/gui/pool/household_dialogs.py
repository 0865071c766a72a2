"""Dialogs for adding a machine to the household with a pairing code, and for leaving the household."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QCoreApplication, Qt, QTimer
from PySide6.QtWidgets import QProgressBar, QWidget

from app.api.responses import MachineResponse, PairingCode, ProgressLine
from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext, restart
from app.gui.app.node_dialog import Sheet
from app.gui.look import formats, sizes
from app.gui.look.accessibility import announce
from app.gui.pool import machine_words
from app.gui.pool.machine_facts import machines_of
from app.gui.widgets.buttons import button
from app.gui.widgets.fields import DropDown
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column, row


def trust_note() -> str:
    """Return the warning to pair only trusted machines, shown on both sides of a pairing."""
    return QCoreApplication.translate(
        "Household",
        "In theory, paired machines could reconstruct what you type from the numbers that they process. Pair only "
        "machines that you trust.",
    )


DIGITS = 6
TICK_MS = 250
NOT_ADMIN = "not_admin"
ROLE_ORDER = (machine_words.USE_AND_LEND, machine_words.LEND, machine_words.GUEST, machine_words.ADMIN)


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
        self.code = ""
        self._ends_at = 0.0
        self._tries = 0
        self._waiting: Call | None = None
        self._is_asking = False  # a request to create or cancel a code is in progress, so the next one must wait
        self._digits = [label("", "digit") for _ in range(DIGITS)]
        self.address = paragraph("", "muted")
        self.address.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self.tr("Time left"))
        self.left = label("", "muted")
        self.role = DropDown()
        self._fill_open()
        self.again = button(self.tr("New code"), self.open_window, "primary")
        self._close = self.offer(self.tr("Cancel"), self.again)
        self._tick = QTimer(self)
        self._tick.setInterval(TICK_MS)
        self._tick.timeout.connect(self._count)
        self.finished.connect(self._close_window)
        self.open_window()

    def open_window(self) -> None:
        """Open a pairing window and show its code."""
        self.notice.clear()
        self.again.hide()
        self._show_code("")
        role, self._is_asking = self.role.currentIndex(), True
        body, opened = {"role": ROLE_ORDER[role]}, partial(self._opened, role)
        self.keep(self.services.client.post("/pairing", body, opened, self._ended, answer=PairingCode))

    def came_back(self) -> None:
        """Explain that the code is no longer valid, because the node has restarted. The user can request a new one."""
        if self._open.isHidden():
            return
        self._stop_waiting()
        gone = self.tr("The background service was restarted, so this code no longer works.")
        self.notice.say(gone, closable=False)
        self.again.show()

    def _fill_open(self) -> None:
        for digit in self._digits:
            digit.setAlignment(Qt.AlignmentFlag.AlignCenter)
            digit.setFixedSize(*[self.services.theme.px(size) for size in (48, 60)])
        boxes = row(None, *self._digits[:3], gap=sizes.S)
        boxes.addSpacing(sizes.L)
        for digit in self._digits[3:]:
            boxes.addWidget(digit)
        boxes.addStretch(1)
        for name in ROLE_ORDER:
            self.role.addItem(machine_words.role_name(name), name)
        self.role.setAccessibleName(self.tr("Permissions of the new machine"))
        self.role.activated.connect(lambda _: self._change_role())
        may = Flow(label(self.tr("Permissions of the new machine")), self.role)
        self._open = QWidget()
        counted = row(None, self.left, None)
        box = column(boxes, self.address, self._bar, counted, may, paragraph(trust_note(), "caption"), gap=sizes.M)
        self._open.setLayout(box)
        self.add(self._open)

    def _opened(self, role: int, answer: PairingCode) -> None:
        self._is_asking = False
        if role != self.role.currentIndex():  # the user has changed it in the meantime
            self._change_role()
            return
        self._show_code(answer.code)
        text = self.tr("If the new machine can't find this one, enter this address there: {address}")
        self.address.setText(text.format(address=answer.address))
        self.fit()
        self._ends_at = time.monotonic() + answer.seconds
        self._tries = answer.tries
        self._bar.setRange(0, answer.seconds)
        self._count()
        self._tick.start()
        announce(self, self.tr("The code is {code}.").format(code=" ".join(self.code)))
        self._waiting = self.services.client.call(
            "GET",
            "/pairing/wait",
            None,
            self._paired,
            self._ended,
            self._follow,
            answer=MachineResponse,
            each=ProgressLine,
        )
        self.keep(self._waiting)

    def _follow(self, line: ProgressLine) -> None:
        left = self._tries if line.progress.tries_left is None else line.progress.tries_left
        if left < self._tries:
            wrong = self.tr("Someone entered a wrong code. Tries left: {tries}.").format(tries=left)
            self.notice.say(wrong, "warning", closable=False)
            self.fit()
            announce(self, wrong)
        self._tries = left
        self._count()

    def _count(self) -> None:
        left = max(0.0, self._ends_at - time.monotonic())
        self._bar.setValue(round(left))
        text = self.tr("Time left: {time}, tries left: {tries}")
        self.left.setText(text.format(time=formats.whole_seconds(left), tries=self._tries))

    def _show_code(self, code: str) -> None:
        self.code = code
        for box, digit in zip(self._digits, code.ljust(DIGITS), strict=True):
            box.setText(digit)
            box.setAccessibleName(digit)
        self.address.setVisible(bool(code))  # an empty label would still take the keyboard focus
        if not code:
            self.left.setText("")

    def _change_role(self) -> None:
        """Replace the code, because each code is tied to a role for the new machine."""
        if not self.again.isHidden() or self._is_asking:
            return  # the next code will have this role
        self._stop_waiting()
        self._is_asking = True
        self.keep(self.services.client.delete("/pairing", lambda _: self.open_window(), self._ended))

    def _stop_waiting(self) -> None:
        """Stop waiting for the other machine and clear the code, which is no longer valid."""
        self._tick.stop()
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        self._show_code("")
        self._bar.setValue(0)

    def _paired(self, answer: MachineResponse) -> None:
        self._tick.stop()
        self._waiting = None
        self.notice.clear()  # clear the notice about an earlier wrong code
        self._open.hide()
        self.heading.setText(self.tr("Paired with {name}").format(name=answer.machine.name))
        self.sentence.setText(trust_note())
        self._close.setText(self.tr("Done"))
        self._close.setFocus()
        announce(self, self.heading.text())
        self.fit()

    def _ended(self, error: AppError) -> None:
        """Explain why there is no code: it expired, too many wrong codes were entered, or creating one failed."""
        self._is_asking = False
        self._tick.stop()
        self._waiting = None
        self._show_code("")
        self._bar.setValue(0)
        self._close.setText(self.tr("Close"))
        if error.reason.code != NOT_ADMIN or not self._name_who_may():
            self.fail(error)
            self.again.show()

    def _name_who_may(self) -> bool:
        """Show which machines may add others, because a new code would not help. Return False if there are none."""
        machines = machines_of(self.services.pool.now)
        if not any("admin" in machine.roles and not machine.this for machine in machines):
            return False
        self._open.hide()
        self.notice.say(machine_words.not_admin_note(machines), "error", closable=False)
        self.fit()
        return True

    def _close_window(self) -> None:
        """Close the pairing window when the dialog closes."""
        self._tick.stop()
        if self.code or self._is_asking:
            self.services.client.delete("/pairing", lambda _: None, lambda _: None)


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
