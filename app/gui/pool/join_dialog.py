"""The dialog for joining a household with a pairing code."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.api.responses import JoinResponse
from app.core.errors import AppError
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.look.accessibility import announce
from app.gui.pool.join_form import JoinForm, joined_household_words, lent_by_others, renamed_words
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import tooltip


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
        self._peer = ""  # the name of the machine whose household was joined
        self._gained = 0  # the memory that the household lends; kept as it was first reported
        self.form = form = JoinForm(services, address)
        self.near, self.none_nearby, self.why = form.near, form.none_nearby, form.why
        self.address, self.code = form.address, form.code
        form.changed.connect(self._validate)
        form.joined.connect(self._joined)
        form.failed.connect(self._failed)
        self.add(form)
        self.act = button(self.tr("Join"), self.join, "primary")
        self._close = self.offer(self.tr("Cancel"), self.act)
        self.finished.connect(form.cancel)
        services.pool.changed.connect(self._show_memory)
        self._validate()
        form.first_field.setFocus()

    @property
    def digits(self) -> str:
        return self.form.digits

    def join(self) -> None:
        """Send the code to the other machine."""
        self.form.join()

    def _validate(self) -> None:
        form = self.form
        if form.is_busy:
            self.notice.clear()
        self.act.setText(self.tr("Joining…") if form.is_busy else self.tr("Join"))
        self.act.setEnabled(form.is_ready)
        self.act.setToolTip("" if form.is_ready or form.is_busy else tooltip(form.needed))

    def _joined(self, answer: JoinResponse) -> None:
        self._peer = answer.machine.name
        self.form.hide()
        self.act.hide()
        self._show_memory()
        renamed = renamed_words(answer)
        self.sentence.setText(renamed)
        self.sentence.setVisible(bool(renamed))
        self._close.setText(self.tr("Done"))
        self._close.setFocus()
        announce(self, self.heading.text())
        self.fit()

    def _show_memory(self) -> None:
        """Show the memory that the household adds. It becomes known shortly after this machine has joined."""
        if self._peer:
            self._gained = self._gained or lent_by_others(self.services.pool.now)
            self.heading.setText(joined_household_words(self._peer, self._gained))

    def _failed(self, error: AppError) -> None:
        self._validate()
        self.fail(error)
