"""The card with the engine that computes on this computer: llama.cpp, or PyTorch or MLX from a folder."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QFileDialog, QFrame, QWidget

from app.api.engine_packs import AddedEngine, EnginePacks
from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import said
from app.gui.look.theme import set_role
from app.gui.widgets.buttons import button
from app.gui.widgets.files import LastFolder
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import column, layout_widget
from app.gui.widgets.notice import Remark


class AddedEngineCard(QFrame):
    """The engine in use, with buttons that choose another one."""

    def __init__(self, services: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._services, self._client, self._pool = services, services.client, services.pool
        self._call: Call | None = None  # a change, which tests the engine
        self._look: Call | None = None
        self.state = paragraph("")
        self.details = paragraph("", "caption")
        self.choose = button(_tr("Use PyTorch or MLX…"), self._choose)
        self.back = button(_tr("Use llama.cpp"), lambda: self._prefer("llamacpp", ""))
        self.remark = Remark(services.theme, services.go)
        self.remark.hide()
        about = paragraph(
            _tr("Poolhouse comes with llama.cpp. You can install PyTorch or MLX into a folder and use it instead."),
            "caption",
        )
        head = column(label(_tr("Engine"), "section"), about, gap=sizes.XS)
        actions = layout_widget(Flow(self.choose, self.back))
        box = column(head, column(self.state, self.details, gap=sizes.XS), self.remark, actions, gap=sizes.M)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        self._show(EnginePacks())
        services.pool.link_changed.connect(self._link_changed)
        self._link_changed()

    def refresh(self) -> None:
        """Request the engine in use."""
        if self._look is None and self._call is None and self._pool.is_there:
            self._look = self._client.get("/engines", self._show, self._not_seen, answer=EnginePacks)

    def use_folder(self, folder: str) -> None:
        """Use the engine in a folder, if it passes its test."""
        self._prefer("pytorch" if (Path(folder) / "torch").is_dir() else "mlx", folder)

    def _choose(self) -> None:
        last = LastFolder(self._services.preferences, "added-engine")
        dialog = QFileDialog(self, _tr("Choose the folder with PyTorch or MLX"), last.folder())
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: last.keep(Path(path)))
        dialog.fileSelected.connect(self.use_folder)
        dialog.open()

    def _prefer(self, engine: str, folder: str) -> None:
        self.remark.say(_tr("Testing the engine…") if folder else _tr("Changing the engine…"), "muted")
        self.remark.show()
        order = {"engine": engine, "folder": folder}
        self._call = self._client.post("/engines/prefer", order, self._changed, self._fail, answer=EnginePacks)
        self._set_enabled()

    def _changed(self, packs: EnginePacks) -> None:
        self._call = None
        self.remark.hide()
        self._show(packs)
        announce(self, self.state.text())

    def _show(self, packs: EnginePacks) -> None:
        self._look = None
        added = packs.added
        self.state.setText(engine_state(added))
        details = engine_details(added)
        self.details.setText(details)
        show_if(self.details, bool(details))
        show_if(self.back, added is not None)
        self._set_enabled()

    def _not_seen(self, error: AppError) -> None:
        self._look = None
        self.remark.show()
        self.remark.fail(error)

    def _fail(self, error: AppError) -> None:
        self._call = None
        self.remark.show()
        self.remark.fail(error)
        self._set_enabled()

    def _link_changed(self) -> None:
        show_if(self, self._pool.is_there)
        self._set_enabled()
        if self.isVisible():
            self.refresh()

    def _set_enabled(self) -> None:
        enabled = self._pool.is_there and self._call is None
        self.choose.setEnabled(enabled)
        self.back.setEnabled(enabled)


def engine_state(added: AddedEngine | None) -> str:
    """Return a sentence about the engine in use."""
    if added is None:
        return _tr("llama.cpp computes on this computer.")
    if added.testing:
        return _tr("{engine} is being tested. Until then, llama.cpp computes.").format(engine=added.label)
    if added.used:
        return _tr("{engine} computes on this computer. llama.cpp computes the models that it cannot.").format(
            engine=added.label
        )
    why = said(added.problem_facts) if added.problem_facts else ""
    return f"{_tr('{engine} is not used, so llama.cpp computes.').format(engine=added.label)} {why}".strip()


def engine_details(added: AddedEngine | None) -> str:
    """Return the folder of the engine, or nothing for llama.cpp."""
    return "" if added is None else _tr("Folder: {folder}").format(folder=added.folder)


def _tr(text: str) -> str:
    return QCoreApplication.translate("AddedEngineCard", text)
