"""Verdicts for all models of the list: from plans for those that are here, from estimates for the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import msgspec
from PySide6.QtCore import QObject, Signal

from app.api.models import HubFile, Verdict, Verdicts
from app.api.plans import Plan
from app.api.requests import Judge, Sketch
from app.core.errors import AppError
from app.core.planner.verdict import VerdictWord
from app.gui.api.node_client import NodeClient
from app.gui.models.library import Library
from app.gui.models.model_item import Item, Kind
from app.gui.models.node_calls import Calls
from app.gui.models.verdicts import Judgement, largest_fitting, of_error, of_plan, sketch, smaller_files, with_smaller

PLANS, ESTIMATES, SIBLINGS = "plans", "estimates", "siblings"
HANDY_BYTES = 6 << 30  # larger models answer slowly without a graphics card
MOST_SKETCHES = 400  # in one request


class Judging(QObject):
    """Asks for one plan at a time, always for the newest state of the household."""

    changed = Signal()

    def __init__(self, client: NodeClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._calls = client, Calls()
        self._known: dict[str, Judgement] = {}
        self._waiting: list[Item] = []
        self._too_big: list[tuple[Item, Item]] = []  # here, and the offer that has its smaller files
        self._items: dict[str, Item] = {}

    def of(self, item: Item) -> Judgement | None:
        """Return the judgment of a model; None while it is not known."""
        return self._known.get(item.key)

    def put(self, item: Item, judgement: Judgement) -> None:
        """Keep a judgment that the details made. The smaller file that would fit is not asked for again."""
        was = self._known.get(item.key)
        same = was is not None and was.verdict.word is judgement.verdict.word
        kept = was.quantisation if was is not None and same else ""
        self._known[item.key] = replace(judgement, quantisation=judgement.quantisation or kept)
        self.changed.emit()

    def ask(self, items: list[Item]) -> None:
        """Judge these again. Earlier judgments stay until then."""
        self._calls.end_all()
        if self._client.endpoint is None:
            return
        self._items = {item.key: item for item in items}
        self._waiting = [item for item in items if item.is_here]
        self._too_big = []
        self._next_plan()
        files = [(item, item.file()) for item in items if not item.is_here]
        sketches = [made for item, file in files if (made := sketch(item, file, item.key))]
        self._estimate(sketches, self._estimated)

    def end(self) -> None:
        self._calls.end_all()

    def _next_plan(self) -> None:
        if not self._waiting:
            self._calls.done(PLANS)
            self._estimate(self._siblings(), self._siblings_estimated, SIBLINGS)
            return
        item = self._waiting.pop(0)
        body = {"model": item.name, "measure": False}
        done, failed = partial(self._planned, item), partial(self._refused, item)
        self._calls.keep(PLANS, self._client.call("POST", "/plan", body, done, failed, answer=Plan))

    def _planned(self, item: Item, plan: Plan) -> None:
        self.put(item, of_plan(plan))
        self._next_plan()

    def _refused(self, item: Item, error: AppError) -> None:
        judgement = of_error(error)
        if judgement is not None:
            self.put(item, judgement)
            offer = offer_of(item, self._items.values())
            if judgement.verdict.word is VerdictWord.TOO_BIG and offer is not None:
                self._too_big.append((item, offer))
        self._next_plan()

    def _siblings(self) -> list[Sketch]:
        """Return sketches of the smaller files of models that are here and too big."""
        return [
            made
            for item, offer in self._too_big
            for file in smaller_files(offer, item.file_bytes)
            if (made := sketch(offer, file, f"{item.key}\n{file.file}"))
        ]

    def _siblings_estimated(self, answer: Verdicts) -> None:
        self._calls.done(SIBLINGS)
        for item, offer in self._too_big:
            smaller = _estimated_files(item.key, smaller_files(offer, item.file_bytes), answer.verdicts)
            self._known[item.key] = replace(self._known[item.key], quantisation=largest_fitting(smaller))
        self.changed.emit()

    def _estimate(self, sketches: list[Sketch], done: Callable[[Verdicts], None], call: str = ESTIMATES) -> None:
        if sketches:
            body = msgspec.to_builtins(Judge(sketches=sketches[:MOST_SKETCHES]))
            self._calls.keep(call, self._client.post("/verdicts", body, done, answer=Verdicts))

    def _estimated(self, answer: Verdicts) -> None:
        """Judge the files to take; where one is too big, ask for the smaller ones next."""
        self._calls.done(ESTIMATES)
        more: list[Sketch] = []
        for key, verdict in answer.verdicts.items():
            item = self._items[key]
            self._known[key] = with_smaller(verdict, [])
            if verdict.word == VerdictWord.TOO_BIG and item.kind is not Kind.OTHER_APP:
                files = smaller_files(item, item.file_bytes)
                more += [made for file in files if (made := sketch(item, file, f"{key}\n{file.file}"))]
        self.changed.emit()
        self._estimate(more, partial(self._smaller_estimated, answer.verdicts))

    def _smaller_estimated(self, before: dict[str, Verdict], answer: Verdicts) -> None:
        self._calls.done(ESTIMATES)
        for key, verdict in before.items():
            item = self._items[key]
            smaller = _estimated_files(key, smaller_files(item, item.file_bytes), answer.verdicts)
            self._known[key] = with_smaller(verdict, smaller)
        self.changed.emit()


def _estimated_files(key: str, files: Iterable[HubFile], verdicts: dict[str, Verdict]) -> list[tuple[HubFile, Verdict]]:
    """Return the files that have a verdict, with it."""
    return [(file, verdicts[name]) for file in files if (name := f"{key}\n{file.file}") in verdicts]


def offer_of(item: Item, items: Iterable[Item]) -> Item | None:
    """Return the model of the catalogue or of a search that a model on the shelf came from."""
    return next((other for other in items if any(file.on_shelf == item.name for file in other.files)), None)


def recommended(library: Library, judging: Judging) -> Item | None:
    """Return a model for real work that fits now: one here, the node's recommendation, or one of the catalogue."""
    return _largest(library.shelf, judging) or library.recommended() or _largest(library.offers, judging)


def _largest(items: list[Item], judging: Judging) -> Item | None:
    """Return the largest handy model that fits; if none is handy, the smallest that fits."""

    fitting = [
        item
        for item in items
        if not item.is_guide and item.writes and (known := judging.of(item)) is not None and known.fits
    ]
    handy = [item for item in fitting if item.file_bytes <= HANDY_BYTES]
    if handy:
        return max(handy, key=lambda item: item.file_bytes)
    return min(fitting, key=lambda item: item.file_bytes, default=None)
