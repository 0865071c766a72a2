"""The models that this household can start with. Those that need no download come first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

import msgspec
from PySide6.QtCore import QCoreApplication, QObject, Signal

from app.api.models import CatalogModel, FoundFile, SharedModel, ShelfModel, Starter, StarterResponse, Verdicts
from app.api.requests import JudgeModels
from app.api.responses import ProgressLine
from app.core.errors import AppError
from app.gui.api.node_client import Calls
from app.gui.app.app_context import AppContext
from app.gui.look import formats
from app.gui.look.sentences import GUIDE
from app.gui.models import verdicts
from app.gui.models.details.about_view import about_of
from app.gui.models.library import Library
from app.gui.models.model_item import ModelItem
from app.gui.models.starter_card import why
from app.gui.models.verdicts import VerdictLoader, sketch

CHAT, CODE = "chat", "code"
USES = (CHAT, CODE)
MEASURE = "measure"
MOST_OF_EACH = 2  # models on this computer, and models of other apps

translate = QCoreApplication.translate


class Source(Enum):
    """The origin of a model that the user can choose."""

    HOUSEHOLD = auto()  # another computer has loaded it
    HERE = auto()
    OTHER_APP = auto()
    DOWNLOAD = auto()


@dataclass(frozen=True, slots=True)
class Choice:
    """A model that the user can choose, with the texts to show."""

    key: str
    source: Source
    title: str
    sentence: str
    figure: str = ""
    item: ModelItem | None = None  # None if another computer has loaded it
    file: str | None = None  # the file to download
    reference: str = ""  # the name of a model that another computer has loaded


class FirstModels(QObject):
    """The lists from which the user chooses the first model.

    If the speed of a recommended model is unknown, the computers are measured automatically.
    """

    changed = Signal()

    def __init__(self, services: AppContext, parent: QObject) -> None:
        super().__init__(parent)
        self._client, self._pool, self._calls = services.client, services.pool, Calls()
        self._library, self._verdicts = Library(services.client, self), VerdictLoader(services.client, self)
        self._starters: dict[str, Starter] = {}
        self._earlier: dict[str, Starter] = {}  # recommended before the computers were measured, by the use
        self._answered: set[str] = set()  # uses for which the node has answered
        self._was_measured = False
        self._has_failed = False  # the measurement has failed once, and was repeated
        self._may_measure = True  # False while a model is being loaded
        self._library.changed.connect(self._listed)
        self._verdicts.changed.connect(self.changed)

    @property
    def is_known(self) -> bool:
        """Return whether the available models are known."""
        return self._library.has_shelf and bool(self._library.offers) and self._answered >= set(USES)

    @property
    def is_measuring(self) -> bool:
        return self._calls.running(MEASURE)

    def ask(self) -> None:
        """Request all lists again."""
        self._earlier.clear()
        if not self._pool.is_there:
            return
        self._may_measure = True
        self._library.refresh()
        self._library.search_other_apps()
        self._ask_starters()

    def stop_measuring(self) -> None:
        """Stop measuring until the lists are requested again. Loading a model measures with its own layers."""
        self._may_measure = False
        if self.is_measuring:
            self._calls.end(MEASURE)
            self._was_measured = False

    def end(self) -> None:
        self.stop_measuring()
        self._calls.end_all()
        self._library.end()
        self._verdicts.end()

    def choices(self) -> tuple[Choice, ...]:
        """Return the available models, the best choice first."""
        here = [*self._here(self._library.shelf, Source.HERE), *self._here(self._library.others, Source.OTHER_APP)]
        return (*map(_shared, self._ready()), *here, *self._downloads())

    def _ready(self) -> Iterable[SharedModel]:
        return (model for model in self._pool.now.shared if model.ready and model.model != GUIDE)

    def _here(self, items: Sequence[ModelItem], source: Source) -> list[Choice]:
        """Return the largest models in a list that currently fit."""
        usable = [item for item in items if not item.is_guide and item.chats and not item.is_missing]
        fitting = [item for item in usable if (known := self._verdicts.of(item)) is not None and known.fits]
        largest = sorted(fitting, key=lambda item: -item.file_bytes)[:MOST_OF_EACH]
        return [self._on_disk(item, source) for item in largest]

    def _on_disk(self, item: ModelItem, source: Source) -> Choice:
        judgment = self._verdicts.of(item)
        if isinstance(item.facts, FoundFile):
            words = translate("FirstModels", "Already downloaded by {app}. No download needed.").format(
                app=item.facts.app
            )
        elif isinstance(item.facts, ShelfModel) and item.facts.shipped:
            words = translate("FirstModels", "Came with Poolhouse. Small, but made for real chats.")
        else:
            words = translate("FirstModels", "Already on this computer. No download.")
        if judgment is not None and judgment.tok_s:
            speed = translate("Models", "Forecast: {speed}.").format(speed=verdicts.speed(judgment))
            words = f"{words} {speed}"
        return Choice(item.key, source, item.title, words, formats.size(item.file_bytes), item)

    def _downloads(self) -> list[Choice]:
        """Return the recommended models that are not yet on this computer."""
        choices: dict[str, Choice] = {}
        for use in USES:
            starter = self._starters.get(use)
            item = self._library.item(f"offer:{starter.id}") if starter is not None else None
            if starter is None or item is None or any(file.on_shelf for file in item.files):
                continue
            suits = [other for other in USES if (known := self._starters.get(other)) and known.id == starter.id]
            choices.setdefault(item.key, _download(item, starter, suits))
        for use, starter in self._earlier.items():
            item = self._library.item(f"offer:{starter.id}")
            if item is not None and not any(file.on_shelf for file in item.files):
                choices.setdefault(item.key, _download(item, starter, [use]))
        return list(choices.values())

    def _listed(self) -> None:
        self._verdicts.ask([*self._library.shelf, *self._library.others])
        self._measure()
        self.changed.emit()

    def _ask_starters(self) -> None:
        for use in USES:
            done, failed = partial(self._recommended, use), partial(self._not_recommended, use)
            call = self._client.get(f"/starter?use={use}", done, failed, answer=StarterResponse)
            self._calls.keep(use, call)

    def _recommended(self, use: str, answer: StarterResponse) -> None:
        self._calls.done(use)
        self._answered.add(use)
        before = self._starters.pop(use, None)
        if answer.starter is not None:
            self._starters[use] = answer.starter
            if before is not None and before.id != answer.starter.id:  # somebody may be reading about it
                self._earlier[use] = before
        else:
            self._earlier.pop(use, None)
        self._measure()
        self.changed.emit()

    def _not_recommended(self, use: str, _: AppError) -> None:
        self._calls.done(use)
        self._answered.add(use)
        self.changed.emit()

    def _measure(self) -> None:
        """Measure all computers once if the speed of a recommended model is not known."""
        unknown = [starter for starter in self._starters.values() if starter.tok_s is None]
        if not self._may_measure or self._was_measured or not unknown or not self.is_known:
            return
        sketches = []
        for starter in {starter.id: starter for starter in unknown}.values():
            item = self._library.item(f"offer:{starter.id}")
            made = sketch(item, item.file(starter.file), starter.id) if item is not None else None
            sketches += [made] if made is not None else []
        if not sketches:
            return
        self._was_measured = True
        body = msgspec.to_builtins(JudgeModels(sketches=sketches, place=True, measure=True))
        call = self._client.call(
            "POST", "/verdicts", body, self._measured, self._not_measured, answer=Verdicts, each=ProgressLine
        )
        self._calls.keep(MEASURE, call)

    def _measured(self, _: Verdicts) -> None:
        self._calls.done(MEASURE)
        self._ask_starters()

    def _not_measured(self, _: AppError) -> None:
        self._calls.done(MEASURE)
        self._was_measured, self._has_failed = self._has_failed, True  # once more, when the lists are here again
        self.changed.emit()


def _shared(model: SharedModel) -> Choice:
    title = translate("FirstModels", "{model}, loaded on {machine}").format(model=model.model, machine=model.machine)
    sentence = translate("FirstModels", "Ready now. Your questions go to {machine}.").format(machine=model.machine)
    return Choice(f"shared:{model.reference}", Source.HOUSEHOLD, title, sentence, reference=model.reference)


def _download(item: ModelItem, starter: Starter, uses: Sequence[str]) -> Choice:
    names = {CHAT: translate("FirstModels", "chat"), CODE: translate("FirstModels", "code")}
    title = translate("FirstModels", "{model} for {uses}").format(
        model=starter.name, uses=translate("FirstModels", " and ").join(names[use] for use in uses)
    )
    parts = [about_of(item.facts) if isinstance(item.facts, CatalogModel) else "", why(starter)]
    if len(starter.machines) > 1:
        words = translate("FirstModels", "Runs on {machines} together.")
        parts.append(words.format(machines=", ".join(starter.machines)))
    size = formats.size(starter.size_bytes or 0)
    sentence = " ".join(filter(None, parts))
    return Choice(item.key, Source.DOWNLOAD, title, sentence, size, item, starter.file)
