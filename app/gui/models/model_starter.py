"""Getting a model ready with one action, which downloads or imports it if necessary and then loads it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from app.api.downloads import Download, DownloadResponse
from app.api.models import FoundFile, ShelfModel
from app.api.plans import LoadedModel, Progress
from app.api.responses import MachineRefs
from app.core.errors import AppError, Reason
from app.gui.api.node_client import Calls
from app.gui.app.app_context import AppContext
from app.gui.look.sentences import GUIDE
from app.gui.models.details.plan_loader import Setup
from app.gui.models.model_item import ModelItem, shelf_item
from app.gui.models.model_loading import ModelLoader

BEGIN, PAUSE = "begin", "pause"
ENDED = ("paused", "failed", "done")
STALE_MS = 2000  # until a snapshot shows that a download has resumed


class Stage(Enum):
    """The current step of a starter."""

    IDLE = auto()
    DOWNLOADING = auto()
    IMPORTING = auto()
    LOADING = auto()


class ModelStarter(QObject):
    """A starter that gets one model ready at a time.

    It continues while its page is hidden, and ends with the window.

    A file that another computer of the household shares is copied from that computer. The node measures the computers
    and then places the model on this computer, or on several computers if it is too large for one.
    """

    changed = Signal()
    ready = Signal(str)  # the name of the loaded model
    failed = Signal(object)  # AppError

    def __init__(self, services: AppContext, parent: QObject) -> None:
        super().__init__(parent)
        self.is_alone = False  # its page was closed, so the window shows its errors
        self._feed = services.starts
        self._client, self._pool, self._importing = services.client, services.pool, services.importing
        self._calls = Calls()
        self.stage = Stage.IDLE
        self.title = ""  # the model as the user knows it
        self._shape: str | None = None  # the placement that the user wants
        self._download = ""  # the ID of the download
        self._was_seen = False  # a snapshot has shown the download
        self._then: Callable[[], object] | None = None  # what begins after the running pause
        self._loaded_before: set[str] = set()  # when it was started
        self._settling = QTimer(self)  # while it runs, the snapshot may show the download as it was before
        self._settling.setSingleShot(True)
        self._settling.setInterval(STALE_MS)
        self._settling.timeout.connect(self._follow)
        self._path = ""  # the file that is being imported
        self._loader = ModelLoader(services.pool, self)
        self._loader.changed.connect(self.changed)
        self._loader.loaded.connect(self._loaded)
        self._loader.failed.connect(self._fail)
        self._pool.changed.connect(self._follow)
        self._pool.link_changed.connect(self._link_changed)
        self._importing.changed.connect(self._import_changed)
        self._importing.imported.connect(self._imported)
        self._importing.ended.connect(self._import_ended)

    @property
    def is_busy(self) -> bool:
        return self.stage is not Stage.IDLE

    @property
    def download(self) -> Download | None:
        """The download in progress, if any."""
        return self._pool.now.downloads.get(self._download) if self.stage is Stage.DOWNLOADING else None

    @property
    def imported_share(self) -> float | None:
        """The fraction of the file that the import has read, or None if it is unknown."""
        queue = self._importing
        return queue.done_bytes / queue.total_bytes if queue.path == self._path and queue.total_bytes else None

    @property
    def steps(self) -> list[Progress]:
        """The progress of the load on each machine."""
        return self._loader.steps if self.stage is Stage.LOADING else []

    def start(self, item: ModelItem, file: str | None = None, shape: str | None = None) -> None:
        """Get a model ready, unless the starter is busy.

        file: a file of a downloadable model. shape: the placement to use, or None to let the planner choose.
        """
        if self.is_busy:
            return
        self._loaded_before = self._loaded_now
        self.title, self._shape = item.title, shape
        chosen = item.file(file)
        match item.facts:
            case ShelfModel():
                self._load(item.name)
            case FoundFile() as found:
                self._path = found.path
                self._go(Stage.IMPORTING)
                self._importing.add(found.path, found.name)
            case _ if chosen is not None and chosen.on_shelf:
                self._load(chosen.on_shelf)
            case _ if chosen is not None and item.remote is not None:
                body = {"repository": item.remote.repository, "file": chosen.file, "revision": item.revision}
                self._go(Stage.DOWNLOADING)
                known = chosen.download if chosen.download in self._pool.now.downloads else None
                begin = partial(self._resume, known) if known else partial(self._find_copy, body, chosen.sha256)
                if self._calls.running(PAUSE):
                    self._then = begin
                else:
                    begin()

    def stop(self) -> None:
        """Stop. Downloaded data is kept, so that the download can be resumed later."""
        stage, download = self.stage, self._download
        self._go(Stage.IDLE)
        self._calls.end(BEGIN)
        if download:
            paused = self._client.post(f"/downloads/{download}/pause", None, self._paused, self._paused)
            self._calls.keep(PAUSE, paused)
        elif stage is Stage.IMPORTING:
            self._importing.cancel_paths([self._path])
        elif stage is Stage.LOADING:
            self._loader.cancel()

    def end(self) -> None:
        """Cancel all requests. A download continues in the node."""
        self.stage, self._then = Stage.IDLE, None
        self._calls.end_all()
        self._loader.end()

    def _go(self, stage: Stage) -> None:
        self.stage = stage
        if stage is not Stage.DOWNLOADING:
            self._download, self._was_seen, self._then = "", False, None
            self._settling.stop()
        self.changed.emit()

    def _find_copy(self, body: dict[str, str | None], sha256: str | None) -> None:
        """Start the download. If another computer of the household shares this file, copy it from there."""
        copied, downloaded = partial(self._copies_found, body, sha256), partial(self._no_copies, body)
        call = self._client.post("/copies", body | {"sha256": sha256}, copied, downloaded, answer=MachineRefs)
        self._calls.keep(BEGIN, call)

    def _copies_found(self, body: dict[str, str | None], sha256: str | None, answer: MachineRefs) -> None:
        if answer.machines:
            body = body | {"machine": answer.machines[0].id, "sha256": sha256}
        self._begin(body)

    def _no_copies(self, body: dict[str, str | None], _: AppError) -> None:
        self._begin(body)

    def _begin(self, body: dict[str, str | None]) -> None:
        call = self._client.post("/downloads", body, self._begun, self._fail, answer=DownloadResponse)
        self._calls.keep(BEGIN, call)

    def _resume(self, download: str) -> None:
        """Track a download that was started earlier, and resume it if it is paused."""
        self._download = download
        path = f"/downloads/{download}/resume"
        self._calls.keep(BEGIN, self._client.post(path, None, self._begun, self._fail, answer=DownloadResponse))

    def _paused(self, _: object) -> None:
        """Start the model that the user chose while the download was being paused. It may be the same model."""
        self._calls.done(PAUSE)
        then, self._then = self._then, None
        if then is not None:
            then()

    def _begun(self, answer: DownloadResponse) -> None:
        self._calls.done(BEGIN)
        self._download = answer.download.id
        if answer.download.state not in ENDED:
            self._settling.start()
        self._follow()

    def _link_changed(self) -> None:
        self._was_seen = False  # a node that has just started may not list its downloads yet

    def _follow(self) -> None:
        """Check the download, and load the model once the download is complete."""
        is_followed = self.stage is Stage.DOWNLOADING and bool(self._download) and not self._calls.running(BEGIN)
        if not is_followed or not self._pool.is_there:
            return
        download = self.download
        if download is None:
            if self._was_seen:  # it was removed elsewhere
                self._go(Stage.IDLE)
            return
        self._was_seen = True
        if download.state in ENDED and self._settling.isActive():
            return
        match download.state:
            case "done" if download.model:
                self._load_unless_replaced(download.model)
            case "failed":
                reason = download.reason_facts or Reason("download_stopped", {"why": download.reason or ""})
                self._fail(AppError(reason.code, **reason.facts))
            case "paused":  # elsewhere in the window, or by a command
                self._go(Stage.IDLE)
            case _:
                self.changed.emit()

    def _import_changed(self) -> None:
        if self.stage is Stage.IMPORTING:
            self.changed.emit()

    def _imported(self, model: ShelfModel) -> None:
        if self.stage is Stage.IMPORTING and model.path == self._path:
            self._load_unless_replaced(model.name)

    def _import_ended(self, path: str, error: AppError | None) -> None:
        if self.stage is Stage.IMPORTING and path == self._path and error is not None:
            self._importing.take_unseen_error()
            self._fail(error)

    @property
    def _loaded_now(self) -> set[str]:
        """The models that are loaded or being loaded, except the Guide, which any other model may replace."""
        return {model.model for model in self._pool.now.models if model.state in ("ready", "loading")} - {GUIDE}

    def _load_unless_replaced(self, name: str) -> None:
        """Load a model whose file is complete, unless the user has loaded another model in the meantime."""
        if self._loaded_now - self._loaded_before - {name}:
            self._go(Stage.IDLE)
        else:
            self._load(name)

    def _load(self, name: str) -> None:
        self._go(Stage.LOADING)
        self._loader.start(Setup(shelf_item(ShelfModel(name=name)), shape=self._shape, exact=self._pool.now.exact))

    def _loaded(self, loaded: LoadedModel) -> None:
        if self.stage is Stage.LOADING:
            self._go(Stage.IDLE)
            self.ready.emit(loaded.model)

    def _fail(self, error: AppError) -> None:
        if self.is_busy:
            self._go(Stage.IDLE)
            self.failed.emit(error)
            if self.is_alone:
                self._feed.failed.emit(self.title, error)
