"""The Models page, with the model list on the left and the details of the selected model on the right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QFileDialog, QSplitter

from app.api.downloads import Download
from app.api.models import FoundFile, RemoveModelResponse, ShelfModel
from app.api.plans import LoadedModel
from app.api.snapshot import MachineRef
from app.core.errors import AppError
from app.gui.api.node_client import Calls, NodeClient, segment
from app.gui.api.node_state import NodeState
from app.gui.app import navigation
from app.gui.app.app_context import AppContext
from app.gui.app.navigation import LOG_PAGE
from app.gui.app.page import Page
from app.gui.look import formats, sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import GUIDE, model_name
from app.gui.look.theme import set_role
from app.gui.models.details.details import Details
from app.gui.models.details.model_actions import ModelAction
from app.gui.models.details.plan_loader import PlanLoader, Setup
from app.gui.models.folder_dialog import FOLDER_ERRORS, choose_folder, choose_folder_text
from app.gui.models.importing import ImportQueue
from app.gui.models.library import Library
from app.gui.models.model_item import ModelItem
from app.gui.models.model_list import ModelList
from app.gui.models.model_loading import ModelLoader
from app.gui.models.model_starter import ModelStarter, Stage
from app.gui.models.shared_models_card import SharedModelsCard
from app.gui.models.starter_card import StarterCard
from app.gui.models.transfers import Transfers
from app.gui.models.verdicts import VerdictLoader, offer_of, recommended
from app.gui.widgets.buttons import button
from app.gui.widgets.dialog import CompactDialog
from app.gui.widgets.files import FileDrops, LastFolder
from app.gui.widgets.labels import FullHeightFrame, paragraph
from app.gui.widgets.layouts import column, scrolled

REMOVE = "remove"
MEMORY_STEP_BYTES = 256 << 20  # smaller changes in lent memory are not worth a new plan
PAUSE_MS = 1000  # memory changes come in bursts
NARROW = 640  # width at the default text size below which the halves are stacked
SIDE_BY_SIDE = [sizes.CHAT_WIDTH * 6 // 10, sizes.CHAT_WIDTH * 5 // 10]
STACKED = [4 * sizes.CHAT_WIDTH // 9, 5 * sizes.CHAT_WIDTH // 9]  # with the halves stacked
TOKEN_CODES = ("hub_token_needed", "hub_token_wrong", "hub_gated")


class ModelsPage(Page):
    """The Models page. It connects the list, the details and the transfers, which make their own requests."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, "")
        self.title.setText(self.tr("Models"))
        client, pool = services.client, services.pool
        self.library, self.verdict_loader = Library(client, self), VerdictLoader(client, self)
        self.plan_loader, self.model_loader = PlanLoader(client, self), ModelLoader(pool, self)
        self.importing, self.watch = services.importing, SnapshotWatcher(pool, self)
        self.removal = Removal(self, client, self.importing)
        self.model_starter = ModelStarter(services, self)
        self._key_to_select = ""  # key of the model to select once it is listed
        self._was_there = False
        self._has_requested = False
        FileDrops(self, self.tr("Drop the file here to add this model")).dropped.connect(self.import_files)
        self.head.addWidget(button(self.tr("Import a file…"), self.choose_file))
        self.later(self._make_list, self._make_details)

    def shown(self) -> None:
        """Request all lists if the page is shown for the first time or the node has reconnected.

        Otherwise, request only what depends on memory, which may have changed while the page was hidden.
        """
        if self.services.pool.is_there and not self._has_requested:
            self._has_requested = True
            self.library.refresh()
            self.library.search_other_apps()
        else:
            self._request_verdicts()
            self._ask_starter()
        if self.focusWidget() is None:
            self.list.view.setFocus()
        self._show_refused()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        """Refresh when the window is shown again with this page open."""
        super().showEvent(event)
        self.shown()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._arrange()

    def choose_file(self) -> None:
        """Ask for GGUF files on this computer and import them."""
        last = LastFolder(self.services.preferences, "models")
        dialog = QFileDialog(self, self.tr("Import a model"), last.folder())
        dialog.setNameFilter(self.tr("GGUF models (*.gguf)"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filesSelected.connect(lambda paths: last.keep(Path(paths[0])))
        dialog.filesSelected.connect(self.import_files)
        dialog.open()

    def import_files(self, paths: list[str]) -> None:
        """Import these files."""
        self.notice.clear()
        for path in paths:
            self.importing.add(path)

    @property
    def is_busy(self) -> bool:
        loads = self.model_loader.is_ours or self.model_starter.stage is Stage.LOADING
        return self.plan_loader.measuring or loads

    def end(self) -> None:
        for part in (self.library, self.verdict_loader, self.model_loader, self.model_starter, self.transfers):
            part.end()
        self.plan_loader.forget()
        self.details.token.end()
        self.details.copies.end()
        self.removal.end()

    def _make_list(self) -> None:
        self.list = ModelList(self.services, self.library, self.verdict_loader)
        self.starter, self.shared = StarterCard(), SharedModelsCard()
        self.none_fits = paragraph(
            self.tr(
                "No model in the catalog fits comfortably. Close large programs, let models use more "
                "memory, or add a machine."
            ),
            "muted",
        )
        self.none_fits.hide()
        self.transfers = Transfers(self.services, self.importing)

    def _make_details(self) -> None:
        self.details = Details(self.services, self.verdict_loader, self.plan_loader, self.model_loader)
        self.later(*self.details.remaining_steps(), self._place_halves, self._wire)

    def _place_halves(self) -> None:
        left = FullHeightFrame()
        inner = column(self.shared, self.starter, self.none_fits, self.list, self.transfers, gap=sizes.M)
        inner.setStretchFactor(self.list, 1)
        left.setLayout(inner)
        self._split = halves = QSplitter(Qt.Orientation.Horizontal)
        self._area = scrolled(halves)  # scrolls if large text does not fit a small window
        halves.setAutoFillBackground(False)  # shows the background of the page
        # added before its contents, because Qt restyles every widget that is reparented
        self.content.addWidget(self._area, 1)
        halves.addWidget(left)
        halves.addWidget(self.details)
        set_role(halves, "apart")
        halves.setHandleWidth(sizes.XL)
        halves.setChildrenCollapsible(False)
        halves.setSizes(SIDE_BY_SIDE)
        halves.setStretchFactor(0, 6)
        halves.setStretchFactor(1, 5)
        self.services.theme.changed.connect(self._arrange)

    def _arrange(self) -> None:
        """Place the halves side by side or, if the window is too narrow for the text size, one above the other."""
        across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        orientation = across if self.width() >= self.services.theme.px(NARROW) else down
        if orientation != self._split.orientation():
            self._split.setOrientation(orientation)
            self._split.setSizes(SIDE_BY_SIDE if orientation is across else STACKED)

    def _wire(self) -> None:
        self.list.picked.connect(self._picked)
        self.list.entered.connect(self._to_buttons)
        self.details.pressed.connect(self._do)
        self.details.recommend.connect(self._recommend)
        self.details.smaller.connect(self._show_smaller)
        self.library.changed.connect(self._library_changed)
        self.library.files_loaded.connect(self._files_loaded)
        self.library.starter_changed.connect(self._update_starter)
        self.starter.start_requested.connect(self._start)
        self.model_starter.failed.connect(self._start_failed)
        self.starter.details_requested.connect(lambda item: self._show(item.key))
        self.shared.chat_requested.connect(lambda reference: self.services.go(f"{navigation.CHAT}/{reference}"))
        self.services.pool.changed.connect(self._show_shared)
        self._show_shared()
        self.watch.shelf.connect(self._refresh_library)
        self.watch.downloads.connect(self._downloads_changed)
        self.watch.memory.connect(self._request_verdicts)
        self.watch.memory.connect(self._ask_starter)
        self.watch.ended.connect(self._download_ended)
        self.model_loader.loaded.connect(self._loaded)
        self.model_loader.failed.connect(self._load_failed)
        self.importing.imported.connect(self._imported)
        self.details.token.saved.connect(self._token_saved)
        self.importing.failed.connect(self._show_refused)
        for part in (self.library, self.transfers, self.removal):
            part.failed.connect(self.fail)
        self.details.token.failed.connect(self.fail)
        self.transfers.cancel_asked.connect(self._ask_cancel)
        self.services.pool.link_changed.connect(self._link_changed)
        delete = QShortcut(QKeySequence.StandardKey.Delete, self.list.view, self._delete_key)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)

    def _link_changed(self) -> None:
        """Refresh the page when the node is reachable again, because anything may have changed meanwhile."""
        there = self.services.pool.is_there
        if there and not self._was_there:
            self._has_requested = False
            if self.isVisible():
                self.shown()
        self._was_there = there

    def _refresh_library(self) -> None:
        if self._has_requested:
            self.library.refresh()

    def _downloads_changed(self) -> None:
        """Refresh the buttons and lists after the state of a download has changed."""
        self.details.update_actions()
        self._refresh_library()

    def _library_changed(self) -> None:
        """Update the page after a list of the library has changed."""
        if self._key_to_select and self.list.select(self._key_to_select):
            self._key_to_select = ""
        now = self.library.item(self.list.chosen_key)
        if now is None and self.library.has_shelf:
            self.list.chosen_key = ""
            self.list.refresh()
        elif now is not None and now != self.details.item:
            self.details.show_item(now)
        self._update_starter()
        self._request_verdicts()

    def _request_verdicts(self) -> None:
        """Request new verdicts for all models because memory may have changed. Does nothing while hidden."""
        if self._has_requested and self.isVisible():
            self.verdict_loader.ask(self.list.items())
            self.details.plan_again()

    def _ask_starter(self) -> None:
        if self._has_requested and self.isVisible():
            self.library.ask_starter()

    def _update_starter(self) -> None:
        """Show the recommended model if the Guide is the only local model and no download of it has begun."""
        own = any(not item.is_guide for item in self.library.shelf)
        begins = self.library.has_shelf and not own
        is_guest = self.services.pool.now.hosts is not None  # a guest is answered by its hosts, with their models
        self.none_fits.setVisible(begins and self.library.none_fits and not is_guest)
        item = self.library.recommended() if begins else None
        if item is not None and any(file.download for file in item.files):
            item = None  # the list of downloads already shows it
        self.starter.show_starter(self.library.starter, item)

    def _show_shared(self) -> None:
        """Show the models that other hosts have loaded. A guest already lists these as its own.

        The Guide is left out, because every computer has it.
        """
        now = self.services.pool.now
        shared = [model for model in now.shared if model.model != GUIDE]
        is_guest = now.hosts is not None
        self.shared.show_models([] if is_guest else shared, [] if is_guest else now.servers)

    def _to_buttons(self) -> None:
        self.details.foot.bar.focus()
        self._area.ensureWidgetVisible(self.details.foot.bar)

    def _picked(self, item: ModelItem) -> None:
        self.details.show_item(item)
        if item.needs_files:
            self.library.ask_files(item)

    def _show(self, key: str) -> None:
        """Select a model. If it is not listed yet, select it as soon as it is."""
        self.list.show_all()
        if not self.list.select(key):
            self._key_to_select = key
            self.library.refresh()

    def _show_smaller(self, item: ModelItem, quantization: str) -> None:
        """Show the download of a smaller quantization of a local model that is too big."""
        if (offer := offer_of(item, self.list.items())) is not None:
            self._show(offer.key)
            self.details.files.choose(quantization)

    def _files_loaded(self, item: ModelItem) -> None:
        if item.key == self.list.chosen_key:
            self.details.show_item(item)

    def _do(self, action: ModelAction, setup: Setup) -> None:
        item = setup.item
        match action:
            case ModelAction.LOAD | ModelAction.LOAD_ALONGSIDE:
                self.notice.clear()
                self.model_loader.start(setup, beside=action is ModelAction.LOAD_ALONGSIDE or self._has_others(item))
            case ModelAction.LOAD_ANYWAY:
                self.removal.ask_anyway(item.name, lambda: self.model_loader.start(setup, anyway=True))
            case ModelAction.UNLOAD:
                self.model_loader.unload(item.name)
            case ModelAction.CHAT:
                self.services.go(f"{navigation.CHAT}/{item.name}")
            case ModelAction.DOWNLOAD:
                self._download(item, setup.file)
            case ModelAction.COPY:
                self._download(item, setup.file, self.details.copies.machines)
            case ModelAction.SHOW:
                file = item.file(setup.file)
                self._show(f"shelf:{file.on_shelf if file is not None else ''}")
            case ModelAction.IMPORT if isinstance(item.facts, FoundFile):
                self.notice.clear()
                self.importing.add(item.facts.path, item.facts.name)
            case ModelAction.REMOVE | ModelAction.DELETE:
                self.removal.ask(item)

    def _has_others(self, item: ModelItem) -> bool:
        """Return whether other models are loaded alongside this one. Reloading it must not unload them."""
        snapshot = self.services.pool.now
        return len(snapshot.models) > 1 and snapshot.model(item.name) is not None

    def _delete_key(self) -> None:
        removals = {ModelAction.DELETE, ModelAction.REMOVE} & set(self.details.foot.bar.buttons)
        if removals and self.details.item is not None:
            self.removal.ask(self.details.item)

    def _download(self, item: ModelItem, name: str | None, copies: Sequence[MachineRef] = ()) -> None:
        """Download a file. If `copies` lists household machines that have the file, the first of them sends it."""
        file = item.file(name)
        if file is None or item.remote is None:
            return
        self.notice.clear()
        body = {"repository": item.remote.repository, "file": file.file, "revision": item.revision}
        if copies:
            body |= {"machine": copies[0].id, "sha256": file.sha256}
        self.transfers.begin(body)

    def _start(self, item: ModelItem, file: str) -> None:
        """Download the recommended model and load it afterwards."""
        self.notice.clear()
        self.model_starter.start(item, file)

    def _start_failed(self, error: AppError) -> None:
        """Show why the recommended model could not be loaded.

        Download errors are shown in the list of downloads.
        """
        if error.reason.code not in {download.code for download in self.transfers.downloads()}:
            self._load_failed(error)

    def _download_ended(self, download: Download) -> None:
        if download.state == "done":
            copied = self.tr("{name} was copied and verified.")
            words = copied if download.machine else self.tr("{name} was downloaded and verified.")
            show = (self.tr("Show"), lambda: self._show(f"shelf:{download.model}"))
            self.notice.say(words.format(name=download.name), "info", show)
        elif download.code in TOKEN_CODES:
            self.details.ask_token()

    def _token_saved(self) -> None:
        """Resume the downloads that were waiting for a token."""
        for download in self.transfers.downloads():
            if download.code in TOKEN_CODES:
                self.transfers.resume(download.id)

    def _show_refused(self) -> None:
        """Show the error of a refused import if the page is visible."""
        if self.isVisible() and (error := self.importing.take_unseen_error()):
            self.fail(error)

    def _imported(self, model: ShelfModel) -> None:
        self._show(f"shelf:{model.name}")
        if model.source or self.library.others:
            self.library.search_other_apps()

    def _loaded(self, loaded: LoadedModel) -> None:
        words = self.tr("{model} is ready.").format(model=model_name(loaded.model))
        announce(self, words)
        self.notice.clear()

    def _load_failed(self, error: AppError) -> None:
        """Show why loading a model failed, and offer a context length that would fit, if any."""
        context = int(error.reason.number("fits_context"))
        choose = self.details.form.context.choose
        smaller = (self.tr("Use a smaller context"), lambda: choose(context))
        self.fail(error, *([smaller] if context else []))
        self.details.plan()

    def _ask_cancel(self, download: Download) -> None:
        self.removal.ask_cancel(download, lambda: self.transfers.drop(download.id))

    def _recommend(self) -> None:
        """Select a model that fits and is more capable than the Guide, preferably a local one."""
        item = recommended(self.library, self.verdict_loader)
        if item is not None:
            self._show(item.key)
            return
        if not self.library.has_shelf:
            self.fail(AppError("node_away"), (self.tr("Show log"), lambda: self.services.go(LOG_PAGE)))
            return
        self.notice.say(
            self.tr(
                "No larger model fits in the memory that is free for models now. Add a machine, or let models use "
                "more memory."
            ),
            "info",
            (self.tr("Add a machine"), lambda: self.services.go(navigation.POOL)),
        )

    def fail(self, error: AppError, *actions: Any) -> None:
        if error.reason.code in FOLDER_ERRORS:
            actions = (*actions, (choose_folder_text(), lambda: choose_folder(self.services, self)))
        super().fail(error, *actions)
        if error.reason.code in TOKEN_CODES:
            self.details.ask_token()


class SnapshotWatcher(QObject):
    """A watcher that reports changes in the node's snapshots that make verdicts or lists outdated."""

    memory = Signal()  # lent memory or the set of machines has changed
    shelf = Signal()  # a local model was added or removed
    downloads = Signal()  # a download began, ended or changed its state
    ended = Signal(object)  # the Download that has just completed or failed

    def __init__(self, pool: NodeState, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = pool
        self._memory: object = None
        self._shelf: object = None
        self._downloads: dict[str, str] = {}
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(PAUSE_MS)
        self._soon.timeout.connect(self.memory)
        pool.changed.connect(self.compare)
        self.compare()

    def compare(self) -> None:
        """Compare the latest snapshot with the previous one."""
        memory = self._lent_memory()
        if memory != self._memory:
            if self._memory is not None:
                self._soon.start()
            self._memory = memory
        shelf = self._pool.now.shelf
        if shelf != self._shelf:
            self._shelf = shelf
            self.shelf.emit()
        self._compare_downloads()

    def _compare_downloads(self) -> None:
        downloads = self._pool.now.downloads
        states = {key: download.state for key, download in downloads.items()}
        before, self._downloads = self._downloads, states
        if states != before:
            self.downloads.emit()
        for key, state in states.items():
            if state in ("done", "failed") and before.get(key, state) != state:
                self.ended.emit(downloads[key])

    def _lent_memory(self) -> list[tuple[Any, ...]]:
        """Return the memory that each machine lends, rounded coarsely because free memory fluctuates constantly."""
        snapshot = self._pool.now
        machines = [
            (machine.id, machine.online, (machine.lent_bytes or 0) // MEMORY_STEP_BYTES)
            for machine in snapshot.machines.values()
        ]
        return [*machines, *((loaded.model, loaded.state == "ready") for loaded in snapshot.models)]


class Removal(QObject):
    """A helper that removes models. It asks before doing anything irreversible. `question` is the open dialog."""

    failed = Signal(object)  # AppError

    def __init__(self, page: Page, client: NodeClient, importing: ImportQueue) -> None:
        super().__init__(page)
        self._page, self._client, self._importing = page, client, importing
        self._calls = Calls()
        self.question: CompactDialog | None = None

    def ask(self, item: ModelItem) -> None:
        """Remove a model. If that deletes its file, ask for confirmation first."""
        if item.shelf is None or not item.shelf.downloaded:
            self._remove(item)
            return
        size = formats.size(item.file_bytes)
        self._question(
            self.tr("Delete {name}?").format(name=item.name),
            self.tr(
                "This deletes the model's file ({size}). To use the model again, you will need to download it again."
            ).format(size=size),
            self.tr("Delete {size}").format(size=size),
            "danger",
            lambda: self._remove(item),
        )

    def ask_anyway(self, name: str, then: Callable[[], object]) -> None:
        """Ask whether to load a model that needs more memory than this machine lends."""
        self._question(
            self.tr("Try {name} anyway?").format(name=name),
            self.tr(
                "This model needs more memory than is free for models on this computer. The model may be very slow or "
                "fail to load, but Poolhouse keeps running."
            ),
            self.tr("Try anyway"),
            "",
            then,
        )

    def ask_cancel(self, download: Download, then: Callable[[], object]) -> None:
        """Ask whether to cancel a download and delete its data."""
        size = formats.size(download.done_bytes or 0)
        self._question(
            self.tr("Cancel the download of {name}?").format(name=download.name),
            self.tr(
                "The {size} downloaded so far will be deleted. To keep this data, pause the download instead."
            ).format(size=size),
            self.tr("Delete {size}").format(size=size),
            "danger",
            then,
        )

    def end(self) -> None:
        self._calls.end_all()

    def _question(self, title: str, words: str, yes: str, role: str, then: Callable[[], object]) -> None:
        self.question = box = CompactDialog(self._page.services.theme, title, words, self._page)
        box.offer(self.tr("Cancel"), box.answer(yes, then, role)).setFocus()
        box.finished.connect(self._answered)
        box.open()

    def _answered(self) -> None:
        self.question = None

    def _remove(self, item: ModelItem) -> None:
        path = f"/models/{segment(item.name)}"
        done = partial(self._removed, item)
        self._calls.keep(REMOVE, self._client.delete(path, done, self._refused, answer=RemoveModelResponse))

    def _removed(self, item: ModelItem, answer: RemoveModelResponse) -> None:
        self._calls.done(REMOVE)
        if answer.file_deleted:
            words = self.tr("{name} was deleted, which freed {size}.").format(
                name=item.name, size=formats.size(answer.freed_bytes)
            )
            self._page.notice.say(words)
            return
        words = self.tr("{name} was removed from the list. Its file was not deleted.")
        path = item.shelf.path if item.shelf is not None else ""
        undo = (self.tr("Undo"), lambda: self._undo_removal(path, item.name))
        self._page.notice.say(words.format(name=item.name), "info", undo)

    def _undo_removal(self, path: str, name: str) -> None:
        self._page.notice.clear()
        self._importing.add(path, name)

    def _refused(self, error: AppError) -> None:
        self._calls.done(REMOVE)
        self.failed.emit(error)
