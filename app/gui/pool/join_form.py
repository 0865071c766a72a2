"""The form for joining a household with a pairing code, in the dialog and in the first run."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QRegularExpression, Qt, QTimer, Signal
from PySide6.QtGui import QRegularExpressionValidator
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QWidget

from app.api.responses import JoinResponse
from app.api.snapshot import Snapshot
from app.core.errors import AppError
from app.core.household.pairing import ALL_WRONG
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.diagnostics.dialogs import open_doctor
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.look.theme import set_role
from app.gui.pool import machine_words
from app.gui.pool.code_panel import trust_note
from app.gui.pool.machine_facts import Stranger, strangers_of
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label, paragraph, tooltip
from app.gui.widgets.layouts import column, layout_widget, row

DIGITS = 6
TYPED = QRegularExpression("[0-9 -]*")  # people read codes aloud in two halves
GONE_MS = 4000  # a machine may seem gone for a moment when addresses change, as after its start
MOST_SHOWN = 8  # so that an attacker cannot fill the screen with announcements
ADDRESS_ROLE = int(Qt.ItemDataRole.UserRole)

translate = QCoreApplication.translate


def lent_by_others(snapshot: Snapshot) -> int:
    """Return the memory that all other machines lend, or 0 if it is not known yet."""
    online = (machine for machine in snapshot.machines.values() if not machine.this and machine.online)
    return sum(machine.lent_bytes or 0 for machine in online)


def joined_household_words(peer: str, lent: int) -> str:
    """Return a sentence that this machine has joined a household, with the household's memory if that is known."""
    if not lent:
        return translate("Household", "You joined {name}’s household").format(name=peer)
    return translate("Household", "You joined {name}’s household: +{size}").format(name=peer, size=formats.size(lent))


def renamed_words(answer: JoinResponse) -> str:
    """Report that this machine was renamed because its name was taken, or return ""."""
    words = translate("Household", "Another machine already has this name, so this one is now called {name}.")
    return words.format(name=answer.called) if answer.called else ""


class JoinForm(QWidget):
    """A form in which the user selects a nearby machine or enters an address, then enters the code.

    address: the address of a nearby machine that the user has already selected, or "". brief: whether to ask only for
    the code while exactly one nearby machine shows one.
    """

    changed = Signal()  # what can be sent has changed, or the form has another height
    joined = Signal(object)  # JoinResponse
    failed = Signal(object)  # AppError

    def __init__(self, services: AppContext, address: str = "", *, brief: bool = False) -> None:
        super().__init__()
        self._services, self._brief = services, brief
        self._call: Call | None = None
        self.near = QListWidget()
        self.near.setAccessibleName(self.tr("Households nearby"))
        self.near.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.near.currentItemChanged.connect(lambda *_: self._chosen())
        self.none_nearby = paragraph("", "muted")
        find = self.tr("Find out why")
        self.why = button(find, lambda: open_doctor(services, self, joins=True), "link")
        self.why.setAccessibleName(self.tr("Why can't Poolhouse find my other computer?"))
        self.address, self.code = QLineEdit(address), QLineEdit()
        self._near = ""  # the address selected in the list; cleared when its entry disappears
        self.shown: tuple[Stranger, ...] = ()  # the machines in the list
        self._is_over = False  # these machines have not been seen for a while
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(GONE_MS)
        self._patience.timeout.connect(self._gone)
        self._fill()
        self.address.textChanged.connect(self.changed)
        self.code.textChanged.connect(self.changed)
        services.pool.changed.connect(self._show_near)
        self._show_near()

    @property
    def digits(self) -> str:
        return "".join(sign for sign in self.code.text() if sign.isdecimal() and sign.isascii())

    @property
    def is_ready(self) -> bool:
        """Return whether everything needed has been entered and nothing is being sent."""
        return bool(self.address.text().strip()) and len(self.digits) == DIGITS and not self.is_busy

    @property
    def is_busy(self) -> bool:
        return self._call is not None

    @property
    def first_field(self) -> QWidget:
        """The field to focus first, which is the code if the address is already known, or else the address."""
        if self.address.text():
            return self.code
        return self.near if self.near.count() else self.address

    @property
    def needed(self) -> str:
        """A sentence about the missing input."""
        return self.tr("Enter the address and the six-digit code.")

    def join(self) -> None:
        """Send the code to the other machine."""
        if not self.is_ready:
            return
        body = {"address": self.address.text().strip(), "code": self.digits}
        self._call = self._services.client.post("/pairing/join", body, self._joined, self._failed, answer=JoinResponse)
        self.changed.emit()

    def cancel(self) -> None:
        """Cancel the request."""
        call, self._call = self._call, None
        if call is not None and call.running:
            call.cancel()

    def _fill(self) -> None:
        self.address.setPlaceholderText(self.tr("For example 192.168.1.20:4242"))
        self.address.setAccessibleName(self.tr("Address"))
        self.code.setAccessibleName(self.tr("Six-digit code"))
        self.code.setPlaceholderText("000 000")
        self.code.setMaxLength(DIGITS + 2)
        self.code.setValidator(QRegularExpressionValidator(TYPED, self.code))
        set_role(self.code, "code")
        self.code.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.code.returnPressed.connect(self.join)
        self._where = layout_widget(
            column(
                label(self.tr("Nearby")),
                self.near,
                self.none_nearby,
                row(self.why, None),
                label(self.tr("Address")),
                self.address,
                label(self.tr("Code")),
                gap=sizes.S,
            )
        )
        self.setLayout(column(self._where, self.code, paragraph(trust_note(), "caption"), gap=sizes.S))

    def _show_near(self) -> None:
        """List the nearby machines with an open pairing window. The selected one stays selected if still listed."""
        strangers = [stranger for stranger in strangers_of(self._services.pool.now) if stranger.pairing_address]
        if not strangers and self.shown and not self._is_over:
            if not self._patience.isActive():
                self._patience.start()
            return
        self._patience.stop()
        self._is_over, self.shown = False, tuple(strangers)
        if self._near and self._near not in [stranger.pairing_address for stranger in strangers]:
            if self.address.text() == self._near:
                self.address.clear()
            self._near = ""
        chosen = self.address.text()
        self.near.blockSignals(True)
        self.near.clear()
        for stranger in strangers[:MOST_SHOWN]:
            address = str(stranger.pairing_address)
            # the longest part comes last, because long lines are elided
            parts = (stranger.name or machine_words.unnamed_machine(), address, stranger.claims)
            item = QListWidgetItem("    ".join(filter(None, parts)))
            if stranger.claims:
                claims = self.tr("{claims} (reported by that machine)").format(claims=stranger.claims)
                item.setToolTip(tooltip(claims))
            item.setData(ADDRESS_ROLE, address)
            self.near.addItem(item)
            if address == chosen:
                self._near = address
            if address == chosen or (not chosen and len(strangers) == 1):
                self.near.setCurrentItem(item)
        self.near.blockSignals(False)
        self.near.setVisible(bool(strangers))
        self.none_nearby.setVisible(not strangers)
        self.why.setVisible(not strangers)
        self.none_nearby.setText(self._why_none_nearby())
        rows = min(3, max(1, len(strangers)))
        self.near.setFixedHeight(self._services.theme.px(sizes.XXL) * rows + 2 * sizes.RING)
        if not chosen:
            self._chosen()
            if self.address.text() and self.address.hasFocus():
                self.code.setFocus()  # nothing is left to enter but the code
        hides = self._brief and len(strangers) == 1 and self.address.text() == self._near
        if self._where.isHidden() != hides:
            self._where.setVisible(not hides)
            self.changed.emit()

    def _gone(self) -> None:
        """Clear the list, because no machine has come back."""
        self._is_over = True
        self._show_near()

    def _why_none_nearby(self) -> str:
        discovery = self._services.pool.now.discovery
        why = self.tr("No nearby machine is showing a code right now.")
        if not discovery.on:
            why = self.tr("Finding nearby machines is turned off in Settings.")
        elif discovery.reason_facts:
            why = said(discovery.reason_facts)
        return f"{why} {self.tr('Enter the address shown next to the code.')}"

    def _chosen(self) -> None:
        item = self.near.currentItem()
        if item is not None:
            self._near = str(item.data(ADDRESS_ROLE))
            self.address.setText(self._near)

    def _joined(self, answer: JoinResponse) -> None:
        self._call = None
        self.joined.emit(answer)

    def _failed(self, error: AppError) -> None:
        self._call = None
        if error.reason.code == ALL_WRONG.code:  # the code is no longer valid
            self.code.clear()
        self.failed.emit(error)
        self.changed.emit()
        self.code.selectAll()
        self.code.setFocus()
