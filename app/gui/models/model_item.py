"""One line of the list: a model on the shelf, in another app, in the catalogue, or found online."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from PySide6.QtCore import QCoreApplication

from app.gui.look import formats
from app.gui.look.sentences import model_name

Json = dict[str, Any]
translate = QCoreApplication.translate

BILLION = 1e9


class Kind(StrEnum):
    """Where a model is."""

    SHELF = "shelf"
    OTHER_APP = "other app"
    OFFER = "offer"  # of the shipped catalogue
    FOUND = "found"  # by the online search


@dataclass(frozen=True, slots=True)
class Item:
    """`facts` is what the node says of it; `files` its quantisations, where they are known."""

    kind: Kind
    key: str  # unique among all lines
    name: str
    facts: Json = field(default_factory=dict, hash=False)

    @property
    def files(self) -> list[Json]:
        return list(self.facts.get("files") or [])

    @property
    def title(self) -> str:
        """What a person reads: the model that comes with the app has a name in sentences."""
        return model_name(self.name) if self.is_guide else self.name

    @property
    def is_here(self) -> bool:
        """On this computer, so that it can be planned exactly."""
        return self.kind is Kind.SHELF

    @property
    def is_guide(self) -> bool:
        return bool(self.facts.get("builtin"))

    def file(self, name: str | None = None) -> Json | None:
        """A file by its name, or the one to take: the recommended, else the first that is usable."""
        usable = [one for one in self.files if one.get("usable")]
        if name is not None:
            return next((one for one in self.files if one["file"] == name), None)
        best = [one for one in usable if one.get("recommended")]
        return next(iter(best or usable), None)


def shelf_item(model: Json) -> Item:
    return Item(Kind.SHELF, f"shelf:{model['name']}", str(model["name"]), model)


def other_item(file: Json) -> Item:
    return Item(Kind.OTHER_APP, f"other:{file['path']}", str(file["name"]), file)


def offer_item(offer: Json) -> Item:
    return Item(Kind.OFFER, f"offer:{offer['id']}", str(offer["name"]), offer)


def found_item(found: Json) -> Item:
    return Item(Kind.FOUND, f"found:{found['repository']}", str(found["name"]), found)


def small_print(item: Item) -> str:
    """The second line: what sort of file, how large, from whom."""
    facts = item.facts
    match item.kind:
        case Kind.SHELF:
            guide = translate("Models", "small, for learning the app") if item.is_guide else ""
            parts = [facts.get("quantisation"), _size(facts.get("file_bytes")), guide, _unknown(item)]
        case Kind.OTHER_APP:
            parts = [facts.get("quantisation"), _size(facts.get("size_bytes")), facts.get("app")]
        case Kind.OFFER:
            file = item.file() or {}
            whole = translate("Models", "whole only") if facts.get("splits") is False else ""
            size = _size(file.get("size_bytes")) or translate("Models", "size not known")
            parts = [facts.get("maker"), file.get("quantisation"), size, whole]
        case Kind.FOUND:
            parts = [facts.get("maker"), parameters(facts.get("parameters")), _loads(facts)]
    return " · ".join(str(part) for part in parts if part)


def _unknown(item: Item) -> str:
    """Nobody has looked at such a file for the catalogue, whoever fetched it."""
    known = item.is_guide or item.facts.get("in_catalogue")
    return "" if known else translate("Models", "not in the catalogue")


def parameters(count: float | None) -> str:
    """`8.2 B parameters`."""
    if not count:
        return ""
    digits = 0 if count >= 100 * BILLION else 1
    shown = formats.number(count / BILLION, digits)
    return translate("Models", "{count} B parameters").format(count=shown)


def _size(n_bytes: float | None) -> str:
    return formats.size(n_bytes) if n_bytes else ""


def _loads(facts: Json) -> str:
    count = facts.get("downloads")
    if not count:
        return ""
    return translate("Models", "{count} downloads").format(count=formats.number(count))


def matches(item: Item, words: str) -> bool:
    """Whether every word stands somewhere in what is said of it."""
    facts = item.facts
    said = (
        item.name,
        facts.get("maker"),
        facts.get("architecture"),
        facts.get("quantisation"),
        facts.get("repository"),
        facts.get("app"),
        *(facts.get("good_at") or []),
    )
    text = " ".join(str(part) for part in said if part).casefold()
    return all(word in text for word in words.casefold().split())
