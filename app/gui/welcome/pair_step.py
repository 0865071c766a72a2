"""Fourth step: another computer, now or later."""

from __future__ import annotations

from app.gui.app.app_context import Services
from app.gui.look import theme as sizes
from app.gui.pool.dialogs.add_dialog import AddSheet
from app.gui.pool.dialogs.join_dialog import JoinSheet
from app.gui.pool.machine_facts import machines_of, may_change
from app.gui.welcome.step import Step
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, row


class PairStep(Step):
    """One machine is enough, so this can wait."""

    def __init__(self, services: Services) -> None:
        super().__init__(
            services,
            self.tr("Do you have another computer?"),
            self.tr(
                "Together they hold larger models. You can also add it later, on the page Pool."
            ),
        )
        self.joined = label("", "good")
        self._which = label("", "section")
        self._first = card(
            self._which,
            paragraph(self.tr("Shows a code to type on the other computer."), "muted"),
            row(button(self.tr("Add a machine…"), self._add), None),
            gap=sizes.S,
        )
        self._other = card(
            label(self.tr("Poolhouse runs on another one already"), "section"),
            paragraph(self.tr("Press “Add a machine” there, and type its code here."), "muted"),
            row(button(self.tr("Join a household…"), self._join), None),
            gap=sizes.S,
        )
        self.away = paragraph(
            self.tr("Waiting for the background service: pairing begins once it answers."), "muted"
        )
        for part in (self.joined, self.away, self._first, self._other):
            self.content.addWidget(part)
        services.pool.changed.connect(self._tell)
        self._tell()

    def _tell(self) -> None:
        machines = machines_of(self.services.pool.snapshot)
        others = [one.name for one in machines if not one.this]
        words = self.tr("Paired with {names}.").format(names=", ".join(others))
        self.joined.setText(words if others else "")
        self.joined.setVisible(bool(others))
        first, more = self.tr("This is the first one"), self.tr("Add one more")
        self._which.setText(more if others else first)
        self._first.setVisible(may_change(machines))
        self._other.setVisible(not others)
        self.away.setVisible(not self.services.pool.is_there)
        for part in (self._first, self._other):
            part.setEnabled(self.services.pool.is_there)

    def _add(self) -> None:
        AddSheet(self.services, self).open()

    def _join(self) -> None:
        JoinSheet(self.services, self).open()
