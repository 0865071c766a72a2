"""The panel that shows a pairing code and waits for the other machine, in the dialog and in the first run."""

from __future__ import annotations

import time
from functools import partial

from PySide6.QtCore import QCoreApplication, Qt, QTimer, Signal
from PySide6.QtWidgets import QProgressBar, QWidget

from app.api.responses import MachineResponse, PairingCode, ProgressLine
from app.api.snapshot import Snapshot
from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.accessibility import announce
from app.gui.pool import machine_words
from app.gui.widgets.fields import DropDown
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column, row

DIGITS = 6
TICK_MS = 250
DIGIT_WIDTH, DIGIT_HEIGHT = 48, 60
ROLE_ORDER = (machine_words.USE_AND_LEND, machine_words.LEND, machine_words.GUEST, machine_words.ADMIN)

translate = QCoreApplication.translate


def trust_note() -> str:
    """Return the warning to pair only trusted machines, shown on both sides before a pairing."""
    return translate(
        "Household",
        "In theory, paired machines could reconstruct what you type from the numbers that they process. Pair only "
        "machines that you trust.",
    )


def lent_by(snapshot: Snapshot, machine: str) -> int:
    """Return the memory that a machine lends, or 0 if it is not known yet."""
    known = snapshot.machines.get(machine)
    return known.lent_bytes or 0 if known is not None and known.online else 0


def joined_words(name: str, lent: int) -> str:
    """Return a sentence that a machine has joined, with the memory that it adds if that is known."""
    if not lent:
        return translate("Household", "{name} joined").format(name=name)
    return translate("Household", "{name} joined: +{size}").format(name=name, size=formats.size(lent))


class CodePanel(QWidget):
    """A code to enter on another machine, with the remaining time and attempts, and the permissions it grants.

    The pairing window opens with `open_window` and must be closed with `close_window`.
    """

    shown = Signal()  # the code has arrived
    paired = Signal(object)  # MachineRef of the new machine
    guessed = Signal(str)  # someone entered a wrong code, in words
    ended = Signal(object)  # AppError: there is no code any more, or there was none

    def __init__(self, services: AppContext) -> None:
        super().__init__()
        self._services = services
        self.code = ""
        self._ends_at = 0.0
        self._tries = 0
        self._waiting: Call | None = None
        self._asking: Call | None = None  # a request to create or cancel a code, so the next one must wait
        self._is_asking = False
        self._digits = [label("", "digit") for _ in range(DIGITS)]
        self.address = paragraph("", "muted")
        self.address.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self.tr("Time left"))
        self.left = label("", "muted")
        self.role = DropDown()
        self._fill()
        self._tick = QTimer(self)
        self._tick.setInterval(TICK_MS)
        self._tick.timeout.connect(self._count)

    @property
    def is_open(self) -> bool:
        """Return whether a code is shown or has been requested."""
        return bool(self.code) or self._is_asking

    def open_window(self) -> None:
        """Open a pairing window and show its code."""
        self._show_code("")
        role, self._is_asking = self.role.currentIndex(), True
        body, opened = {"role": ROLE_ORDER[role]}, partial(self._opened, role)
        self._asking = self._services.client.post("/pairing", body, opened, self._ended, answer=PairingCode)

    def close_window(self) -> None:
        """Close the pairing window, if it is open."""
        was_open = self.is_open
        self.forget()
        if was_open:
            self._services.client.delete("/pairing", lambda _: None, lambda _: None)

    def forget(self) -> None:
        """Stop waiting for the other machine and clear the code, which is no longer valid."""
        self._tick.stop()
        for call in (self._waiting, self._asking):
            if call is not None and call.running:
                call.cancel()
        self._waiting = self._asking = None
        self._is_asking = False
        self._show_code("")
        self._bar.setValue(0)

    def _fill(self) -> None:
        for digit in self._digits:
            digit.setAlignment(Qt.AlignmentFlag.AlignCenter)
            digit.setFixedSize(*[self._services.theme.px(size) for size in (DIGIT_WIDTH, DIGIT_HEIGHT)])
        boxes = row(None, *self._digits[:3], gap=sizes.S)
        boxes.addSpacing(sizes.L)
        for digit in self._digits[3:]:
            boxes.addWidget(digit)
        boxes.addStretch(1)
        for name in ROLE_ORDER:
            self.role.addItem(machine_words.role_name(name), name)
        self.role.setAccessibleName(self.tr("Permissions for the new machine"))
        self.role.activated.connect(lambda _: self._change_role())
        may = Flow(label(self.tr("Permissions for the new machine")), self.role)
        counted = row(None, self.left, None)
        note = paragraph(trust_note(), "caption")
        self.setLayout(column(boxes, self.address, self._bar, counted, may, note, gap=sizes.M))

    def _opened(self, role: int, answer: PairingCode) -> None:
        self._is_asking, self._asking = False, None
        if role != self.role.currentIndex():  # the user has changed it in the meantime
            self._replace()
            return
        self._show_code(answer.code)
        text = self.tr("If the new machine can't find this one, enter this address there: {address}")
        self.address.setText(text.format(address=answer.address))
        self._ends_at = time.monotonic() + answer.seconds
        self._tries = answer.tries
        self._bar.setRange(0, answer.seconds)
        self._count()
        self._tick.start()
        self.shown.emit()
        announce(self, self.tr("The code is {code}.").format(code=" ".join(self.code)))
        self._waiting = self._services.client.call(
            "GET", "/pairing/wait", None, self._paired, self._ended, self._follow,
            answer=MachineResponse, each=ProgressLine,
        )  # fmt: skip

    def _follow(self, line: ProgressLine) -> None:
        left = self._tries if line.progress.tries_left is None else line.progress.tries_left
        if left < self._tries:
            wrong = self.tr("Someone entered a wrong code. Tries left: {tries}.").format(tries=left)
            self.guessed.emit(wrong)
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
        if self.code:  # otherwise the next code will have this role
            self._replace()

    def _replace(self) -> None:
        self.forget()
        self._is_asking = True
        self._asking = self._services.client.delete("/pairing", lambda _: self.open_window(), self._ended)

    def _paired(self, answer: MachineResponse) -> None:
        self._tick.stop()
        self._waiting = None
        self._show_code("")
        self.paired.emit(answer.machine)

    def _ended(self, error: AppError) -> None:
        self.forget()
        self.ended.emit(error)
