"""The card with the engine that computes on this computer: llama.cpp, or PyTorch or MLX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt, QTimer
from PySide6.QtWidgets import QFileDialog, QFrame, QPushButton, QWidget

from app.api.engine_packs import AddedEngine, AvailableEngine, EngineInstallation, EnginePacks
from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import said
from app.gui.look.theme import set_role
from app.gui.this_computer.engine_install_dialogs import (
    DeleteEngineDialog,
    InstallationRow,
    InstallEngineDialog,
    installation_outcome,
)
from app.gui.widgets.buttons import button
from app.gui.widgets.files import LastFolder
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import clear_layout, column, layout_widget
from app.gui.widgets.notice import Remark

LOOK_MS = 500  # between looks at the progress of an installation


class AddedEngineCard(QFrame):
    """The engine in use, with buttons that choose another one."""

    def __init__(self, services: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._services, self._client, self._pool = services, services.client, services.pool
        self._call: Call | None = None  # a change, which tests the engine
        self._look: Call | None = None
        self._installing: EngineInstallation | None = None
        self._listed: list[AvailableEngine] | None = None
        self._if_faster = False  # whether the engine computes only where it is faster
        self.buttons: dict[tuple[str, str], QPushButton] = {}  # by engine and action
        self._tick = QTimer(self)
        self._tick.setInterval(LOOK_MS)
        self._tick.timeout.connect(self.refresh)
        self.state = paragraph("")
        self.details = paragraph("", "caption")
        self.choose = button(_tr("Use from a folder…"), self._choose)
        self.back = button(_tr("Use llama.cpp"), lambda: self._prefer("llamacpp", ""))
        self.remark = Remark(services.theme, services.go)
        self.remark.hide()
        self.progress = InstallationRow(self._cancel)
        self._rows = column(gap=sizes.S)
        about = paragraph(_tr("Poolhouse comes with llama.cpp. PyTorch or MLX can compute instead."), "caption")
        head = column(label(_tr("Engine"), "section"), about, gap=sizes.XS)
        actions = layout_widget(Flow(self.choose, self.back))
        states = column(self.state, self.details, gap=sizes.XS)
        box = column(head, states, self._rows, self.progress, self.remark, actions, gap=sizes.M)
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

    def _prefer(self, engine: str, folder: str, *, if_faster: bool = False) -> None:
        is_other = engine != "llamacpp"
        self.remark.say(_tr("Testing the engine…") if is_other else _tr("Changing the engine…"), "muted")
        self.remark.show()
        order = {"engine": engine, "folder": folder, "if_faster": if_faster}
        self._call = self._client.post("/engines/prefer", order, self._changed, self._fail, answer=EnginePacks)
        self._set_enabled()

    def install(self, engine: str) -> None:
        """Install an engine, and use it if it passes its test."""
        self._ask("/engines/install", {"engine": engine, "wheels": ""}, self._begun)

    def delete(self, engine: str) -> None:
        """Delete an installed engine."""
        self._ask("/engines/uninstall", {"engine": engine}, self._changed)

    def _cancel(self) -> None:
        self._ask("/engines/install/cancel", {}, self._begun)

    def _ask(self, path: str, order: dict[str, str], done: Callable[[EnginePacks], None]) -> None:
        self.remark.hide()
        self._call = self._client.post(path, order, done, self._fail, answer=EnginePacks)
        self._set_enabled()

    def _begun(self, packs: EnginePacks) -> None:
        self._call = None
        self._show(packs)

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
        if_faster = added is not None and added.if_faster
        if (packs.available, if_faster) != (self._listed, self._if_faster):
            self._listed, self._if_faster = packs.available, if_faster
            self._lay_out(packs.available)
        self._follow(packs.installation)
        self._set_enabled()

    def _lay_out(self, engines: Sequence[AvailableEngine]) -> None:
        """Show the engines that are installed or can be, each with its buttons."""
        focused = next((key for key, shown in self.buttons.items() if shown.hasFocus()), None)
        clear_layout(self._rows)
        self.buttons.clear()
        for engine in engines:
            actions = Flow()
            for name, text, spoken, act, offered in (
                ("install", _tr("Install…"), _tr("Install {engine}"), self._offer, not engine.installed),
                (
                    "if-faster",
                    _tr("Use where faster"),
                    _tr("Use {engine} where it is faster"),
                    self._use_if_faster,
                    engine.installed and not (engine.preferred and self._if_faster),
                ),
                (
                    "use",
                    _tr("Use always"),
                    _tr("Use {engine} always"),
                    self._use,
                    engine.installed and (self._if_faster or not engine.preferred),
                ),
                ("delete", _tr("Delete…"), _tr("Delete {engine}"), self._offer_deletion, engine.installed),
            ):
                if offered:
                    made = self.buttons[engine.engine, name] = button(text, partial(act, engine))
                    made.setAccessibleName(spoken.format(engine=engine.label))
                    actions.addWidget(made)
            row = QWidget()
            row.setLayout(column(paragraph(engine_size(engine)), layout_widget(actions), gap=sizes.XS))
            self._rows.addWidget(row)
        before = _before(self.choose)
        for made in self.buttons.values():
            QWidget.setTabOrder(before, made)
            before = made
        if focused is not None:
            self.buttons.get(focused, self.choose).setFocus()

    def _offer(self, engine: AvailableEngine) -> None:
        InstallEngineDialog(self._services, engine, self.install, self).open()

    def _offer_deletion(self, engine: AvailableEngine) -> None:
        DeleteEngineDialog(self._services, engine, self.delete, self).open()

    def _use(self, engine: AvailableEngine) -> None:
        self._prefer(engine.engine, "")

    def _use_if_faster(self, engine: AvailableEngine) -> None:
        self._prefer(engine.engine, "", if_faster=True)

    def _follow(self, installation: EngineInstallation | None) -> None:
        """Show the progress of an installation, and its result once when it ends."""
        before, self._installing = self._installing, installation
        self.progress.show_installation(installation)
        if installation is not None and not installation.is_over:
            self._tick.start()
            return
        self._tick.stop()
        if before is not None and not before.is_over and installation is not None:
            words, role = installation_outcome(installation)
            self.remark.say(words, role)
            self.remark.show()
            announce(self, words)

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
        is_installing = self._installing is not None and not self._installing.is_over
        enabled = self._pool.is_there and self._call is None
        for shown in (self.choose, self.back, *self.buttons.values()):
            shown.setEnabled(enabled and not is_installing)
        self.progress.cancel.setEnabled(enabled)


def _before(widget: QWidget) -> QWidget:
    """Return the widget from which Tab leads to this one."""
    earlier: QWidget | None = widget.previousInFocusChain()
    while earlier is not None and earlier is not widget and earlier.focusPolicy() is Qt.FocusPolicy.NoFocus:
        earlier = earlier.previousInFocusChain()
    return earlier or widget


def engine_state(added: AddedEngine | None) -> str:
    """Return a sentence about the engine in use."""
    if added is None:
        return _tr("llama.cpp computes on this computer.")
    if added.testing:
        return _tr("{engine} is being tested. Until then, llama.cpp computes.").format(engine=added.label)
    if added.used and added.if_faster:
        return _tr("{engine} computes the models for which it is faster than llama.cpp on this computer.").format(
            engine=added.label
        )
    if added.used:
        return _tr("{engine} computes on this computer. llama.cpp computes the models that it cannot.").format(
            engine=added.label
        )
    why = said(added.problem_facts) if added.problem_facts else ""
    return f"{_tr('{engine} is not used, so llama.cpp computes.').format(engine=added.label)} {why}".strip()


def engine_size(engine: AvailableEngine) -> str:
    """Return a line about an engine that is installed or can be."""
    if engine.installed:
        size = formats.size(engine.installed_bytes)
        return _tr("{engine} is installed and takes {size}.").format(engine=engine.label, size=size)
    size = formats.size(engine.download_bytes)
    return _tr("{engine} is not installed (a download of {size}).").format(engine=engine.label, size=size)


def engine_details(added: AddedEngine | None) -> str:
    """Return the folder of the engine and what is known of its speed, or nothing for llama.cpp."""
    if added is None:
        return ""
    lines = [_tr("Folder: {folder}").format(folder=added.folder)]
    if added.used and added.if_faster:
        lines += [_tr("Faster: {families}").format(families=", ".join(added.faster))] if added.faster else []
        lines += [_tr("Slower: {families}").format(families=", ".join(added.slower))] if added.slower else []
        if not added.faster and not added.slower:
            lines.append(_tr("No model has been measured with it yet. That happens when a model is planned."))
    return "\n".join(lines)


def _tr(text: str) -> str:
    return QCoreApplication.translate("AddedEngineCard", text)
