"""The actions available for the selected model, most likely first, and the bar with their buttons."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from app.api.downloads import Download
from app.api.models import FoundFile, HubFile
from app.api.plans import LoadedModel, Plan
from app.api.snapshot import MachineRef
from app.core.errors import AppError
from app.gui.look import formats, sizes
from app.gui.models import verdicts
from app.gui.models.details.plan_loader import Setup
from app.gui.models.model_item import ItemKind, ModelItem
from app.gui.models.verdicts import Judgment
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import column, line
from app.gui.widgets.overflow_row import OverflowRow

translate = QCoreApplication.translate


class ModelAction(StrEnum):
    """The actions that a button can trigger."""

    LOAD = "load"
    LOAD_ALONGSIDE = "load_alongside"  # load in addition to the loaded models
    LOAD_ANYWAY = "load_anyway"
    UNLOAD = "unload"
    CHAT = "chat"
    DOWNLOAD = "download"
    COPY = "copy"  # copy from a machine of the household
    SHOW = "show"  # show the local copy of the same model
    IMPORT = "import"
    REMOVE = "remove"  # remove from the list but keep the file
    DELETE = "delete"  # delete the file too


@dataclass(frozen=True, slots=True)
class Action:
    """A button to show. `role` is "primary", "danger" or empty."""

    do: ModelAction
    text: str
    role: str = ""
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class ActionContext:
    """The facts that determine which actions the selected model has."""

    loaded: LoadedModel | None  # the selected model if it is loaded, otherwise the model that answers by default
    is_loading: bool  # a model is being loaded
    judgment: Judgment | None
    may_try: bool  # the model could run on this machine alone, with more memory than the machine lends
    downloads: dict[str, Download]
    embedder: str = ""  # name of the loaded embedding model or reranker
    beside: Judgment | None = None  # verdict on loading it in addition to the loaded models
    copies: tuple[MachineRef, ...] = ()  # machines that can send the file


def actions(setup: Setup, context: ActionContext) -> list[Action]:
    """Return the available actions in button order."""
    item = setup.item
    match item.kind:
        case ItemKind.SHELF:
            return [*_running(setup, context), *_removal(item, context)]
        case ItemKind.OTHER_APP:
            usable = isinstance(item.facts, FoundFile) and item.facts.usable
            return [_primary(ModelAction.IMPORT, translate("Models", "Use this file"), usable)]
        case _:
            return _getting(item.file(setup.file), context)


def _primary(do: ModelAction, text: str, enabled: bool = True) -> Action:
    return Action(do, text, "primary", enabled)


def _running(setup: Setup, context: ActionContext) -> list[Action]:
    loaded = context.loaded
    state = loaded.state if loaded is not None and loaded.model == setup.item.name else None
    unload = Action(ModelAction.UNLOAD, translate("Models", "Unload"))
    if setup.item.name == context.embedder and not setup.item.writes:
        return [unload]
    if loaded is not None and state == "ready":
        # with these settings; the name is short so that it has room beside the others, as nobody looks for it in a menu
        again = Action(ModelAction.LOAD, translate("Models", "Reload"))
        other = _differs(setup, loaded)
        return [_primary(ModelAction.CHAT, translate("Models", "Open chat")), *([again] if other else []), unload]
    if state == "recovering":
        return [_primary(ModelAction.CHAT, translate("Models", "Open chat")), unload]
    if state == "lost":
        return [_primary(ModelAction.LOAD, translate("Models", "Load again"), not context.is_loading), unload]
    gone = setup.item.is_missing
    fits = context.judgment is None or context.judgment.fits
    load = _primary(ModelAction.LOAD, translate("Models", "Load"), fits and not gone and not context.is_loading)
    if loaded and load.enabled:
        fits = context.beside is None or context.beside.fits
        return [load, Action(ModelAction.LOAD_ALONGSIDE, translate("Models", "Load alongside"), enabled=fits)]
    if fits or gone or not context.may_try or context.is_loading:
        return [load]
    return [load, Action(ModelAction.LOAD_ANYWAY, translate("Models", "Try anyway"))]


def _differs(setup: Setup, loaded: LoadedModel) -> bool:
    """Return whether the model is loaded with different settings."""
    used = {stage.id for stage in loaded.stages}
    same = (setup.context, setup.users) == (loaded.context, loaded.users)
    same = same and setup.kv == (loaded.kv or setup.kv) and setup.shape == loaded.shape_ordered
    same = same and setup.exact == loaded.exact and setup.draft == (loaded.draft_ordered not in (None, "none"))
    return not same or bool(used & set(setup.without))


def _removal(item: ModelItem, context: ActionContext) -> list[Action]:
    is_loaded = context.loaded is not None and context.loaded.model == item.name
    if item.is_guide or is_loaded or item.name == context.embedder:
        return []
    if item.shelf is not None and item.shelf.downloaded:
        size = formats.size(item.file_bytes)
        return [Action(ModelAction.DELETE, translate("Models", "Delete {size}").format(size=size), "danger")]
    return [Action(ModelAction.REMOVE, translate("Models", "Remove from the list"))]


def _getting(file: HubFile | None, context: ActionContext) -> list[Action]:
    if file is None:
        return []
    if file.on_shelf:
        return [_primary(ModelAction.SHOW, translate("Models", "Show"))]
    download = context.downloads.get(file.download or "")
    if download is not None and download.state not in ("done", "failed", "paused"):
        return [_primary(ModelAction.DOWNLOAD, translate("Models", "Downloading…"), enabled=False)]
    text = translate("Models", "Download")
    if file.size_bytes:
        size = formats.size(file.size_bytes)
        text = translate("Models", "Download {size}").format(size=size)
    if download is not None and download.state != "done" and download.done_bytes:
        done, total = formats.size(download.done_bytes), formats.size(download.total_bytes or 0)
        text = translate("Models", "Resume at {done} of {total}").format(done=done, total=total)
    role = "primary" if context.judgment is None or context.judgment.fits else ""
    if context.copies and file.usable:
        words = translate("Models", "Copy from {machine}").format(machine=context.copies[0].name)
        return [Action(ModelAction.COPY, words, role), Action(ModelAction.DOWNLOAD, text)]
    return [Action(ModelAction.DOWNLOAD, text, role, file.usable)]


REMOVALS = (ModelAction.DELETE, ModelAction.REMOVE)  # placed at the far end, away from the other buttons


class ActionBar(QWidget):
    """The buttons below the details. They are recreated when the available actions change."""

    pressed = Signal(object)  # ModelAction

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[Action] = []
        self.buttons: dict[ModelAction, QPushButton] = {}
        self._row = OverflowRow()
        self.setLayout(column(self._row, gap=0))

    def show_actions(self, actions: list[Action]) -> None:
        """Show a button for each action. The button of the focused action keeps the focus."""
        if actions == self._shown:
            return
        focused = next((do for do, made in self.buttons.items() if made.hasFocus()), None)
        self._shown = actions
        self.buttons = {}
        near = sum(action.do not in REMOVALS for action in actions)
        self._row.show_buttons([self._made(action) for action in actions], near)
        if focused in self.buttons:
            self.buttons[focused].setFocus()

    def focus(self) -> None:
        """Focus the first enabled button."""
        for made in self.buttons.values():
            if made.isEnabled():
                made.setFocus()
                return

    def _made(self, action: Action) -> QPushButton:
        made = button(action.text, lambda: self.pressed.emit(action.do), action.role)
        made.setEnabled(action.enabled)
        self.buttons[action.do] = made
        return made


class AlongsideView(QWidget):
    """A line that shows whether the selected model fits in memory alongside the loaded ones.

    The parent widget hides it if no model is loaded.
    """

    def __init__(self) -> None:
        super().__init__()
        self.judgment: Judgment | None = None
        self.words = paragraph("", "muted")
        self.setLayout(column(self.words))
        self.hide()

    def show_result(self, result: Plan | AppError | None) -> None:
        """Show the plan for loading the model alongside the loaded ones, or the reason why it does not fit."""
        refused = verdicts.of_error(result) if isinstance(result, AppError) else None
        self.judgment = verdicts.of_plan(result) if isinstance(result, Plan) else refused
        if self.judgment is not None:
            words = QCoreApplication.translate("Models", "Load alongside: {verdict}")
            self.words.setText(words.format(verdict=_verdict(self.judgment)))


def _verdict(judgment: Judgment) -> str:
    """Return a verdict as text, such as `Fits · 1.2 GiB to spare · 9–14 tok/s`."""
    return " · ".join(filter(None, (verdicts.title(judgment), verdicts.beside(judgment), verdicts.speed(judgment))))


class ActionFoot(QWidget):
    """The fixed area below the scrolling details, with the action buttons and an AlongsideView."""

    def __init__(self) -> None:
        super().__init__()
        self.beside, self.bar = AlongsideView(), ActionBar()
        below = column(self.beside, self.bar, gap=sizes.S)
        below.setContentsMargins(sizes.L, sizes.M, sizes.L, sizes.M)
        self.setLayout(column(line(), below, gap=0))
