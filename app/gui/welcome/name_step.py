"""First step: what the others call this computer."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.gui.app.app_context import AppContext
from app.gui.welcome.step import Failed, Step, Then
from app.gui.widgets.fields import MachineName
from app.gui.widgets.labels import label, paragraph

# A name for this machine that was typed while its node still starts: kept until the node is there.


class LateName(QObject):
    """Lives with the pool, so that the first steps may be over before the node is there, and their window, too."""

    refused = Signal(object)  # AppError

    def __init__(self, services: AppContext) -> None:
        super().__init__(services.pool)
        self._services, self._name = services, ""
        services.pool.changed.connect(self._send)

    def want(self, name: str) -> None:
        """The newest counts; "" takes it back."""
        self._name = name

    def _send(self) -> None:
        name, node = self._name, self._services.pool.node
        if name and node:
            self._name = ""
            path = f"/machines/{node['id']}/name"
            self._services.client.post(path, {"name": name}, lambda _: None, self.refused.emit)


class NameStep(Step):
    """The node has found a friendly name already; it may be another."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(
            services,
            self.tr("Welcome to Poolhouse"),
            self.tr(
                "The computers of your home run one language model together. What you write and "
                "the answer stay on this computer; between computers travel only the numbers "
                "inside the model."
            ),
        )
        self.field = MachineName(self.tr("Name of this computer"))
        self.field.needed = False  # the node will tell one
        self.field.judged.connect(self.judged)
        self.field.setPlaceholderText(self.tr("One moment…"))
        words = label(self.tr("Name of this computer"))
        words.setBuddy(self.field)
        self.content.addWidget(words)
        self.content.addWidget(self.field)
        self.content.addWidget(self.field.problem)
        hint = self.tr("Your other computers see this name. It says nothing about who you are.")
        self.content.addWidget(paragraph(hint, "caption"))
        self._filled = ""  # by us; whatever else stands there a person wants
        self.late = LateName(services)
        services.pool.changed.connect(self._fill)
        self._fill()

    def entered(self) -> None:
        self._fill()
        self.field.setFocus()
        self.field.selectAll()

    @property
    def may_go_on(self) -> bool:
        return self.field.fits

    def apply(self, then: Then, failed: Failed) -> None:
        """Rename; while the node still starts, as soon as it is there."""
        name, node = self.field.name, self.services.pool.node
        self.late.want("")
        if name in ("", self._filled, node.get("name")):
            then()
        elif node:
            self.post(f"/machines/{node['id']}/name", {"name": name}, then, failed)
        else:
            self.late.want(name)
            then()

    def _fill(self) -> None:
        name = self.services.pool.node.get("name")
        if name and self.field.text() == self._filled:
            self._filled = str(name)
            self.field.needed = True
            self.field.setPlaceholderText("")
            self.field.setText(self._filled)
