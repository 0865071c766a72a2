"""Keeps a verdict for every model of the list: plans for those here, estimates for the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.errors import AppError
from app.core.planner.verdict import VerdictWord
from app.gui.api.node_client import NodeClient
from app.gui.models.library import Library
from app.gui.models.model_item import Item, Kind
from app.gui.models.node_calls import Calls
from app.gui.models.verdicts import Judgement, largest_fitting, of_error, of_plan, sketch, smaller_files, with_smaller

Json = dict[str, Any]
PLANS, ESTIMATES, SIBLINGS = "plans", "estimates", "siblings"
HANDY_BYTES = 6 << 30  # larger ones answer slowly where no graphics card helps
MOST_SKETCHES = 400  # the node takes no more at once


class Judging(QObject):
    """Asks one question at a time; the newest household counts."""

    changed = Signal()

    def __init__(self, client: NodeClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._calls = client, Calls()
        self._known: dict[str, Judgement] = {}
        self._waiting: list[Item] = []
        self._too_big: list[tuple[Item, Item]] = []  # here, and the offer that has its smaller files
        self._items: dict[str, Item] = {}

    def of(self, item: Item) -> Judgement | None:
        """None while it is not known."""
        return self._known.get(item.key)

    def put(self, item: Item, judgement: Judgement) -> None:
        """The details found out themselves. Which smaller file would fit is not asked again for it."""
        was = self._known.get(item.key)
        same = was is not None and was.verdict.word is judgement.verdict.word
        kept = was.quantisation if was is not None and same else ""
        self._known[item.key] = replace(judgement, quantisation=judgement.quantisation or kept)
        self.changed.emit()

    def ask(self, items: list[Item]) -> None:
        """Judge these anew. What was known stays until then."""
        self._calls.end_all()
        if self._client.endpoint is None:
            return
        self._items = {item.key: item for item in items}
        self._waiting = [item for item in items if item.is_here]
        self._too_big = []
        self._next_plan()
        asked = [(item, item.file()) for item in items if not item.is_here]
        sketches = [one for item, file in asked if (one := sketch(item, file, item.key))]
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
        self._calls.keep(PLANS, self._client.call("POST", "/plan", body, done, failed))

    def _planned(self, item: Item, plan: Json) -> None:
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

    def _siblings(self) -> list[Json]:
        """Of what is here and too big: the smaller files that its offer has."""
        return [
            made
            for item, offer in self._too_big
            for file in smaller_files(offer, item.facts)
            if (made := sketch(offer, file, f"{item.key}\n{file['file']}"))
        ]

    def _siblings_estimated(self, answer: Json) -> None:
        self._calls.done(SIBLINGS)
        found: Json = answer["verdicts"]
        for item, offer in self._too_big:
            judged = (
                (file, found[name])
                for file in smaller_files(offer, item.facts)
                if (name := f"{item.key}\n{file['file']}") in found
            )
            self._known[item.key] = replace(self._known[item.key], quantisation=largest_fitting(judged))
        self.changed.emit()

    def _estimate(self, sketches: list[Json], done: Any, call: str = ESTIMATES) -> None:
        if sketches:
            body = {"sketches": sketches[:MOST_SKETCHES]}
            self._calls.keep(call, self._client.post("/verdicts", body, done))

    def _estimated(self, answer: Json) -> None:
        """The files to take first; for those that are too big, the smaller ones are asked next."""
        self._calls.done(ESTIMATES)
        found: Json = answer["verdicts"]
        more: list[Json] = []
        for key, verdict in found.items():
            item = self._items[key]
            self._known[key] = with_smaller(verdict, [])
            if verdict["word"] == "too big" and item.kind is not Kind.OTHER_APP:
                files = smaller_files(item, item.file() or {})
                more += [made for file in files if (made := sketch(item, file, f"{key}\n{file['file']}"))]
        self.changed.emit()
        self._estimate(more, partial(self._smaller_estimated, found))

    def _smaller_estimated(self, before: Json, answer: Json) -> None:
        self._calls.done(ESTIMATES)
        found: Json = answer["verdicts"]
        for key, verdict in before.items():
            item = self._items[key]
            smaller = [
                (file, found[name])
                for file in smaller_files(item, item.file() or {})
                if (name := f"{key}\n{file['file']}") in found
            ]
            self._known[key] = with_smaller(verdict, smaller)
        self.changed.emit()


def offer_of(item: Item, items: Iterable[Item]) -> Item | None:
    """The line of the catalogue, or of a search, whose file this one is."""
    return next((one for one in items if any(file.get("on_shelf") == item.name for file in one.files)), None)


def recommended(library: Library, judging: Judging) -> Item | None:
    """A model for real work that fits now: one here, else what the node recommends, else one of the catalogue."""
    return _largest(library.shelf, judging) or library.recommended() or _largest(library.offers, judging)


def _largest(items: list[Item], judging: Judging) -> Item | None:
    """The largest handy one that fits; where none is handy, the smallest."""

    def size(item: Item) -> int:
        return int(item.facts.get("file_bytes") or (item.file() or {}).get("size_bytes") or 0)

    found = [
        item
        for item in items
        if not item.is_guide
        and item.facts.get("writes", True)
        and (known := judging.of(item)) is not None
        and known.fits
    ]
    handy = [item for item in found if size(item) <= HANDY_BYTES]
    return max(handy, key=size) if handy else min(found, key=size, default=None)
