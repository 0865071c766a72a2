"""Machines that are not reached, each with a field for its address; or the way into a household."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.gui.app.app_context import Services
from app.gui.diagnostics.address_form import AddressForm
from app.gui.look import theme as sizes
from app.gui.pool.dialogs.join_dialog import JoinSheet
from app.gui.pool.machine_facts import machines_of
from app.gui.widgets.buttons import wrapping
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import clear, column, held


class Reaching(QWidget):
    """`refresh` follows the pool; a field that somebody types in stays."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._box = column(gap=sizes.M)
        self.setLayout(self._box)
        self._shown: tuple[str, ...] | None = None
        self.forms: list[AddressForm] = []

    def refresh(self) -> None:
        machines = machines_of(self._services.pool.snapshot)
        away = tuple(one.name for one in machines if not one.this and not one.online)
        state = away or (("",) if len(machines) > 1 else ())
        if state == self._shown:
            return
        self._shown = state
        for form in self.forms:
            form.cancel()
        self.forms = []
        clear(self._box)
        if len(machines) < 2:
            self._box.addWidget(held(Flow(wrapping(self.tr("Join a household…"), self._join))))
        elif not away:
            words = self.tr("All machines of your household are connected.")
            self._box.addWidget(paragraph(words, "muted"))
        for one in machines:
            if one.name in away and not one.this:
                form = AddressForm(self._services, one.name, one.address or "", self.refresh)
                form.button.setProperty("role", None)
                self.forms.append(form)
                self._box.addWidget(form)

    def _join(self) -> None:
        JoinSheet(self._services, self.window()).open()
