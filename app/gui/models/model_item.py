"""The data of a model list entry, which is a local model, another app's file, a catalog entry or a search result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QCoreApplication

from app.api.models import CatalogModel, FoundFile, HubFile, HubListing, HubModel, ShelfModel
from app.gui.look import formats
from app.gui.look.sentences import model_name

translate = QCoreApplication.translate

MILLION, BILLION = 1e6, 1e9
BYTES_PER_PARAMETER = 0.61  # at Q4_K_M (4.85 bits), the usual recommendation
Facts = ShelfModel | FoundFile | CatalogModel | HubModel


class ItemKind(StrEnum):
    """The source of a listed model."""

    SHELF = "shelf"
    OTHER_APP = "other app"
    OFFER = "offer"  # from the app's catalog
    FOUND = "found"  # from the online search


@dataclass(frozen=True, slots=True)
class ModelItem:
    """An entry of the model list, with the node's facts about the model."""

    key: str  # unique among all listed models
    name: str
    facts: Facts

    @property
    def kind(self) -> ItemKind:
        match self.facts:
            case ShelfModel():
                return ItemKind.SHELF
            case FoundFile():
                return ItemKind.OTHER_APP
            case CatalogModel():
                return ItemKind.OFFER
            case _:
                return ItemKind.FOUND

    @property
    def shelf(self) -> ShelfModel | None:
        """The local model, or None if the entry is not a local model. Only local models can be planned exactly."""
        return self.facts if isinstance(self.facts, ShelfModel) else None

    @property
    def remote(self) -> CatalogModel | HubModel | None:
        """The downloadable model, or None if the entry is for a file on this computer."""
        return self.facts if isinstance(self.facts, CatalogModel | HubModel) else None

    @property
    def files(self) -> list[HubFile]:
        """The known files of a downloadable model, one per quantization."""
        return self.facts.files if isinstance(self.facts, CatalogModel | HubListing) else []

    @property
    def title(self) -> str:
        """The display name. It differs from `name` for the built-in model."""
        return model_name(self.name) if self.is_guide else self.name

    @property
    def is_here(self) -> bool:
        return self.shelf is not None

    @property
    def is_guide(self) -> bool:
        return self.shelf is not None and self.shelf.builtin

    @property
    def is_missing(self) -> bool:
        """Return whether a local model's file is gone or on a disk that is not connected."""
        return self.shelf is not None and self.shelf.missing is not None

    @property
    def needs_files(self) -> bool:
        """Return whether the files of a search result have not been requested yet."""
        return self.kind is ItemKind.FOUND and not self.files

    @property
    def writes(self) -> bool:
        return self.shelf is None or self.shelf.writes

    @property
    def is_base(self) -> bool:
        """Return whether a model on this computer completes text but does not chat."""
        return self.shelf is not None and self.shelf.is_base

    @property
    def chats(self) -> bool:
        """Return False if a model is known to be unusable for chats."""
        return self.writes and not self.is_base

    @property
    def splits(self) -> bool:
        """Return False if the model is known to run only on a single machine."""
        return self.facts.splits is not False

    @property
    def is_gated(self) -> bool:
        return self.remote is not None and self.remote.gated

    @property
    def quantization(self) -> str:
        """The quantization of a file on this computer, or an empty string for a downloadable model."""
        return self.facts.quantization or "" if isinstance(self.facts, ShelfModel | FoundFile) else ""

    @property
    def file_bytes(self) -> int:
        """The size of the local file or of the file to download, or 0 if unknown."""
        match self.facts:
            case ShelfModel():
                return self.facts.file_bytes
            case FoundFile():
                return self.facts.size_bytes
        file = self.file()
        return file.size_bytes or 0 if file is not None else 0

    @property
    def listed_bytes(self) -> float:
        """The size used for filtering the list, or 0 if unknown.

        A search result's size is always estimated from its number of parameters, even once its files are known.
        Otherwise, the entry could vanish from the filtered list while the user is looking at it.
        """
        if isinstance(self.facts, HubModel):
            return (self.facts.parameters or 0) * BYTES_PER_PARAMETER
        return self.file_bytes

    @property
    def revision(self) -> str | None:
        """The revision of the repository, if known."""
        return self.facts.revision if isinstance(self.facts, CatalogModel | HubListing) else None

    def file(self, name: str | None = None) -> HubFile | None:
        """Return the file with this name. The default is the recommended file, or else the first usable one."""
        if name is not None:
            return next((file for file in self.files if file.file == name), None)
        usable = [file for file in self.files if file.usable]
        return next((file for file in usable if file.recommended), usable[0] if usable else None)


def shelf_item(model: ShelfModel) -> ModelItem:
    return ModelItem(f"shelf:{model.name}", model.name, model)


def other_item(file: FoundFile) -> ModelItem:
    return ModelItem(f"other:{file.path}", file.name, file)


def offer_item(offer: CatalogModel) -> ModelItem:
    return ModelItem(f"offer:{offer.id}", offer.name, offer)


def found_item(model: HubModel) -> ModelItem:
    return ModelItem(f"found:{model.repository}", model.name, model)


def details_line(item: ModelItem) -> str:
    """Return the second line of a list entry, with facts such as quantization, size and source."""
    facts = item.facts
    size = formats.size(item.file_bytes) if item.file_bytes else ""
    match facts:
        case ShelfModel():
            guide = translate("Models", "small, for learning the app") if facts.builtin else ""
            guide = translate("Models", "came with Poolhouse") if facts.shipped else guide
            # nobody has tested this file for the catalog, whatever its origin
            is_known = facts.builtin or facts.shipped or facts.in_catalog
            unknown = "" if is_known else translate("Models", "not in the catalog")
            parts = [facts.quantization, size, guide, unknown]
        case FoundFile():
            parts = [facts.quantization or "", size, facts.app]
        case CatalogModel():
            file = item.file()
            whole = "" if facts.splits else translate("Models", "can't be split")
            size = size or translate("Models", "size not known")
            parts = [facts.maker, file.quantization if file is not None else "", size, whole]
        case _:
            downloads = ""
            if facts.downloads:
                words = translate("Models", "{count} downloads")
                downloads = words.format(count=formats.number(facts.downloads))
            parts = [facts.maker, parameters(facts.parameters), downloads]
    return " · ".join(part for part in parts if part)


def parameters(count: float | None) -> str:
    """Return a parameter count as text, such as `8.2B parameters`, or an empty string if unknown."""
    return translate("Models", "{count} parameters").format(count=count_words(count)) if count else ""


def count_words(count: float) -> str:
    """Return a number of parameters as text, such as `8.2B` or `270M`."""
    if count < BILLION:
        return translate("Models", "{count}M").format(count=formats.number(count / MILLION))
    digits = 0 if count >= 100 * BILLION else 1
    return translate("Models", "{count}B").format(count=formats.number(count / BILLION, digits))


def matches(item: ModelItem, words: str) -> bool:
    """Return whether each of these words occurs in the facts about a model."""
    facts = item.facts
    texts = [item.name, facts.architecture or "", item.quantization]
    if item.remote is not None:
        texts += [item.remote.maker, item.remote.repository]
    if isinstance(facts, FoundFile):
        texts.append(facts.app)
    if isinstance(facts, CatalogModel):
        texts += facts.good_at
    text = " ".join(texts).casefold()
    return all(word in text for word in words.casefold().split())
