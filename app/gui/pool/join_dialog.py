"""The dialog for joining a household with a pairing code."""

from __future__ import annotations

from PySide6.QtCore import QRegularExpression, Qt
from PySide6.QtGui import QRegularExpressionValidator
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QWidget

from app.api.responses import JoinResponse
from app.core.errors import AppError
from app.core.household.pairing import ALL_WRONG
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.diagnostics.dialogs import open_doctor
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import said
from app.gui.look.theme import set_role
from app.gui.pool import machine_words
from app.gui.pool.household_dialogs import trust_note
from app.gui.pool.machine_facts import strangers_of
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label, paragraph, tooltip
from app.gui.widgets.layouts import column, row

DIGITS = 6
TYPED = QRegularExpression("[0-9 -]*")  # people read codes aloud in two halves
MOST_SHOWN = 8  # so that an attacker cannot fill the screen with announcements
ADDRESS_ROLE = int(Qt.ItemDataRole.UserRole)


class JoinHouseholdDialog(Sheet):
    """A dialog for joining a household. The user selects a nearby machine or enters an address, then enters the code.

    address: the address of a nearby machine that the user has already selected, or "".
    """

    def __init__(self, services: AppContext, parent: QWidget, address: str = "") -> None:
        super().__init__(services, "", "", parent)
        self.setWindowTitle(self.tr("Join a household"))
        self.heading.setText(self.tr("Join a household"))
        self.sentence.setText(self.tr("On a machine in the household, click “Add a machine”. It shows a code."))
        self.sentence.show()
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
        self._fill()
        self.act = button(self.tr("Join"), self.join, "primary")
        self._close = self.offer(self.tr("Cancel"), self.act)
        self.address.textChanged.connect(self._validate)
        self.code.textChanged.connect(self._validate)
        services.pool.changed.connect(self._show_near)
        self._show_near()
        self._validate()
        self._first_field().setFocus()

    @property
    def digits(self) -> str:
        return "".join(sign for sign in self.code.text() if sign.isdecimal() and sign.isascii())

    def join(self) -> None:
        """Send the code to the other machine."""
        if not self.act.isEnabled():
            return
        self.notice.clear()
        self.act.setEnabled(False)
        self.act.setText(self.tr("Joining…"))
        body = {"address": self.address.text().strip(), "code": self.digits}
        self.keep(self.services.client.post("/pairing/join", body, self._joined, self._failed, answer=JoinResponse))

    def _first_field(self) -> QWidget:
        """Return the field to focus first, which is the code if the address is already known, or else the address."""
        if self.address.text():
            return self.code
        return self.near if self.near.count() else self.address

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
        self._form = QWidget()
        self._form.setLayout(
            column(
                label(self.tr("Nearby")),
                self.near,
                self.none_nearby,
                row(self.why, None),
                label(self.tr("Address")),
                self.address,
                label(self.tr("Code")),
                self.code,
                paragraph(trust_note(), "caption"),
                gap=sizes.S,
            )
        )
        self.add(self._form)

    def _show_near(self) -> None:
        """List the nearby machines with an open pairing window. The selected one stays selected if still listed."""
        strangers = [stranger for stranger in strangers_of(self.services.pool.now) if stranger.pairing_address]
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
        self.near.setFixedHeight(self.services.theme.px(sizes.XXL) * rows + 2 * sizes.RING)
        if not chosen:
            self._chosen()

    def _why_none_nearby(self) -> str:
        discovery = self.services.pool.now.discovery
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

    def _validate(self) -> None:
        ready = bool(self.address.text().strip()) and len(self.digits) == DIGITS
        self.act.setEnabled(ready)
        needed = self.tr("Enter the address and the six-digit code.")
        self.act.setToolTip("" if ready else tooltip(needed))

    def _joined(self, answer: JoinResponse) -> None:
        self._form.hide()
        self.act.hide()
        self.heading.setText(self.tr("Paired with {name}").format(name=answer.machine.name))
        called = self.tr("Another machine already has this name, so this one is now called {name}.")
        renamed = f"{called.format(name=answer.called)} " if answer.called else ""
        self.sentence.setText(renamed + trust_note())
        self._close.setText(self.tr("Done"))
        self._close.setFocus()
        announce(self, self.heading.text())
        self.fit()

    def _failed(self, error: AppError) -> None:
        self.act.setText(self.tr("Join"))
        self._validate()
        self.fail(error)
        if error.reason.code == ALL_WRONG.code:  # the code is no longer valid
            self.code.clear()
        self.code.selectAll()
        self.code.setFocus()
