"""A form that connects to a household machine at an address entered by the user."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QLineEdit, QWidget

from app.core.errors import AppError
from app.gui.api.node_client import Call, segment
from app.gui.app.app_context import AppContext
from app.gui.look import sizes
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column, row
from app.gui.widgets.notice import Go, Remark


class AddressForm(QWidget):
    """An address field with a Connect button. `done` is called when the machine was reached and its address saved."""

    def __init__(
        self, services: AppContext, machine: str, known: str, done: Callable[[], object], go: Go | None = None
    ) -> None:
        """Create the form. `go` opens a page of the window; the default is `services.go`."""
        super().__init__()
        self._services, self._machine, self._done = services, machine, done
        self._call: Call | None = None
        title = self.tr("Address of {machine}").format(machine=machine)
        self.field = QLineEdit(known)
        self.field.setPlaceholderText("10.0.0.2:4242")
        self.field.setAccessibleName(title)
        self.field.returnPressed.connect(self.connect_now)
        self.button = button(self.tr("Connect"), self.connect_now, "primary")
        self.words = Remark(services.theme, go or services.go)
        self.words.hide()
        line = row(self.field, self.button, gap=sizes.S)
        self.setLayout(column(label(title, "caption"), line, self.words, gap=sizes.XS))

    def connect_now(self) -> None:
        """Connect to the address in the field."""
        address = self.field.text().strip()
        if not address or (self._call is not None and self._call.running):
            return
        self.button.setEnabled(False)
        self.words.say(self.tr("Connecting…"), "caption")
        self.words.show()
        path = f"/machines/{segment(self._machine)}/address"
        body = {"address": address}
        self._call = self._services.client.post(path, body, self._reached, self._failed)

    def cancel(self) -> None:
        """Cancel the pending request."""
        call, self._call = self._call, None
        if call is not None and call.running:
            call.cancel()

    def _reached(self, _: object) -> None:
        self.button.setEnabled(True)
        words = self.tr("Connected to {machine}. Its address was saved.")
        self.words.say(words.format(machine=self._machine), "good")
        self._done()

    def _failed(self, error: AppError) -> None:
        self.button.setEnabled(True)
        self.words.fail(error)
        self.words.show()
