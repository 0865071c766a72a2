"""The access token for models whose makers ask for an account; the node keeps it, and never says it."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from app.core.errors import AppError
from app.gui.api.node_client import NodeClient
from app.gui.models.node_calls import Calls
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import column

Json = dict[str, Any]
TOKEN = "token"  # noqa: S105  the name of a call


class TokenField(QWidget):
    """Says whether one is kept and where, and takes another."""

    failed = Signal(object)  # AppError
    kept = Signal()

    def __init__(self, client: NodeClient) -> None:
        super().__init__()
        self._client, self._calls = client, Calls()
        self._words = paragraph("", "muted")
        self._field = QLineEdit()
        self._field.setEchoMode(QLineEdit.EchoMode.Password)
        self._field.setPlaceholderText(self.tr("Access token, hf_…"))
        self._field.setAccessibleName(self.tr("Access token of Hugging Face"))
        self._field.setMaxLength(400)
        self._field.returnPressed.connect(self._keep)
        self._save = button(self.tr("Keep token"), self._keep)
        self.setLayout(column(self._words, Flow(self._field, self._save)))

    def look(self) -> None:
        """Ask whether one is kept."""
        self._calls.keep(TOKEN, self._client.get("/token", self._known))

    def end(self) -> None:
        self._calls.end_all()

    def _keep(self) -> None:
        typed = self._field.text().strip()
        if typed:
            call = self._client.post("/token", {"token": typed}, self._done, self._refused)
            self._calls.keep(TOKEN, call)

    def _done(self, answer: Json) -> None:
        self._field.clear()
        self._known(answer)
        self.kept.emit()

    def _refused(self, error: AppError) -> None:
        self._calls.done(TOKEN)
        self.failed.emit(error)

    def _known(self, answer: Json) -> None:
        self._calls.done(TOKEN)
        ask = self.tr(
            "Its maker asks for an account: accept the terms on the model's page, then give an "
            "access token of huggingface.co."
        )
        if answer["set"]:
            where = self.tr("A token is kept {where}.").format(where=answer["where"])
            self._words.setText(f"{ask} {where}")
        else:
            self._words.setText(ask)
