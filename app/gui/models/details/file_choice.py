"""Controls for choosing a model file and entering an access token, and a search for machines that have the file."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox, QLineEdit, QWidget

from app.api.models import HubFile, TokenState
from app.api.requests import FindCopies
from app.api.responses import MachineRefs
from app.api.snapshot import MachineRef
from app.core.errors import AppError
from app.gui.api.node_client import Calls, NodeClient
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.models.model_item import ModelItem
from app.gui.widgets.buttons import button
from app.gui.widgets.fields import DropDown
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph, tooltip
from app.gui.widgets.layouts import column

ASK = "copies"
TOKEN = "token"  # noqa: S105  the name of a call
MIN_CHARACTERS = 12  # minimum number of visible characters


class FileChoice(QWidget):
    """A drop-down list of a model's quantizations. It is hidden if the model has no files to choose from."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.combo = DropDown()
        self.combo.setAccessibleName(self.tr("Quantization"))
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.combo.setSizeAdjustPolicy(policy)
        self.combo.setMinimumContentsLength(MIN_CHARACTERS)
        self.combo.currentIndexChanged.connect(lambda _: self.changed.emit())
        title = label(self.tr("Quantization"))
        title.setBuddy(self.combo)
        self.setLayout(column(title, self.combo, gap=sizes.XS))

    @property
    def file(self) -> str | None:
        """The name of the selected file."""
        data = self.combo.currentData()
        return str(data) if data else None

    def show_item(self, item: ModelItem, keep: str | None = None) -> None:
        """List the files of a model. Select the file `keep` if the model has it, otherwise the best one."""
        blocked = self.combo.blockSignals(True)
        self.combo.clear()
        for file in item.files:
            self.combo.addItem(self._words(file), file.file)
            if not file.usable:
                self._bar(self.combo.count() - 1, said(file.reason_facts) if file.reason_facts else "")
        best = item.file(keep) or item.file()
        self.combo.setCurrentIndex(self.combo.findData(best.file) if best else -1)
        self.combo.blockSignals(blocked)
        self.setVisible(bool(item.files))

    def choose(self, quantization: str) -> None:
        """Select the first file with this quantization."""
        for n in range(self.combo.count()):
            if self.combo.itemText(n).startswith(quantization):
                self.combo.setCurrentIndex(n)
                return

    def _words(self, file: HubFile) -> str:
        size = formats.size(file.size_bytes) if file.size_bytes else ""
        count = self.tr("{count} files").format(count=file.parts) if file.parts > 1 else ""
        words = " · ".join(part for part in (file.quantization or file.file, size, count) if part)
        if file.on_shelf:
            return self.tr("{words} (on this computer)").format(words=words)
        if file.recommended:
            return self.tr("{words} (recommended)").format(words=words)
        return words

    def _bar(self, place: int, why: str) -> None:
        model = self.combo.model()
        if isinstance(model, QStandardItemModel) and (entry := model.item(place)) is not None:
            entry.setEnabled(False)
            entry.setToolTip(tooltip(why))
            entry.setData(why, Qt.ItemDataRole.AccessibleDescriptionRole)


class CopyFinder(QObject):
    """A finder of household machines that have the selected file. It searches again when machines come or go."""

    changed = Signal()

    def __init__(self, services: AppContext, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool, self._client, self._calls = services.pool, services.client, Calls()
        self._question: FindCopies | None = None
        self._there: set[str] = set()
        self.machines: tuple[MachineRef, ...] = ()
        self._pool.changed.connect(self._pool_changed)

    def ask(self, item: ModelItem, file: HubFile | None) -> None:
        """Find the machines that have this file. Results for any other file are discarded."""
        question = None
        if item.remote is not None and file is not None and file.usable and not file.on_shelf:
            question = FindCopies(
                repository=item.remote.repository, file=file.file, revision=item.revision, sha256=file.sha256
            )
        if question != self._question:
            self._set_machines(())
        self._question, self._there = question, self._other_machines()
        self._ask()

    def end(self) -> None:
        self._calls.end_all()

    def _ask(self) -> None:
        if self._question is None or not self._there:
            self._calls.end(ASK)
            self._set_machines(())
            return
        call = self._client.post(
            "/copies", msgspec.to_builtins(self._question), self._received, self._failed, answer=MachineRefs
        )
        self._calls.keep(ASK, call)

    def _pool_changed(self) -> None:
        there = self._other_machines()
        if there != self._there:
            self._there = there
            self._ask()

    def _other_machines(self) -> set[str]:
        """Return the IDs of the household's other machines that are online."""
        machines = self._pool.now.machines.values() if self._pool.is_there else ()
        return {machine.id for machine in machines if machine.online and not machine.this}

    def _received(self, answer: MachineRefs) -> None:
        self._calls.done(ASK)
        self._set_machines(tuple(answer.machines))

    def _failed(self, _: AppError) -> None:
        """Report that no machine has the file, which can still be downloaded."""
        self._calls.done(ASK)
        self._set_machines(())

    def _set_machines(self, machines: tuple[MachineRef, ...]) -> None:
        if machines != self.machines:
            self.machines = machines
            self.changed.emit()


class TokenField(QWidget):
    """A field for the access token that gated models require, with a note on where the current token is stored."""

    failed = Signal(object)  # AppError
    saved = Signal()

    def __init__(self, client: NodeClient) -> None:
        super().__init__()
        self._client, self._calls = client, Calls()
        self._words = paragraph("", "muted")
        self._field = QLineEdit()
        self._field.setEchoMode(QLineEdit.EchoMode.Password)
        self._field.setPlaceholderText(self.tr("Access token, hf_…"))
        self._field.setAccessibleName(self.tr("Hugging Face access token"))
        self._field.setMaxLength(400)
        self._field.returnPressed.connect(self._save_token)
        self._save = button(self.tr("Save token"), self._save_token)
        self.setLayout(column(self._words, Flow(self._field, self._save)))

    def request_state(self) -> None:
        """Request from the node whether a token is stored, and show the answer."""
        self._calls.keep(TOKEN, self._client.get("/token", self._show_state, answer=TokenState))

    def end(self) -> None:
        self._calls.end_all()

    def _save_token(self) -> None:
        typed = self._field.text().strip()
        if typed:
            call = self._client.post("/token", {"token": typed}, self._done, self._refused, answer=TokenState)
            self._calls.keep(TOKEN, call)

    def _done(self, answer: TokenState) -> None:
        self._field.clear()
        self._show_state(answer)
        self.saved.emit()

    def _refused(self, error: AppError) -> None:
        self._calls.done(TOKEN)
        self.failed.emit(error)

    def _show_state(self, answer: TokenState) -> None:
        self._calls.done(TOKEN)
        ask = self.tr(
            "This model requires a Hugging Face account. Accept the terms on the model page, then enter an access "
            "token from huggingface.co."
        )
        if answer.set:
            where = self.tr("The token is stored {where}.").format(where=said(answer.where_facts))
            self._words.setText(f"{ask} {where}")
        else:
            self._words.setText(ask)
