"""All models that the user can select, from local models and other apps' files to the catalog and search results."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import msgspec
from PySide6.QtCore import QObject, Signal

from app.api.models import Catalog, FoundFiles, HubListing, HubModel, HubSearch, Models, Starter, StarterResponse
from app.core.errors import AppError
from app.gui.api.node_client import Calls, NodeClient
from app.gui.models.model_item import ModelItem, found_item, matches, offer_item, other_item, shelf_item

SEARCH, FILES, FOUND, CATALOG, SHELF = "search", "files", "found", "catalog", "shelf"
STARTER = "starter"
MAX_RESULTS = 30


class Library(QObject):
    """The lists of models. Each list is requested from the node when it is needed."""

    changed = Signal()
    failed = Signal(object)  # AppError of a request that the user made
    starter_changed = Signal()  # the recommendation has changed
    search_changed = Signal()  # a search has begun, ended or failed
    files_loaded = Signal(object)  # ModelItem with its files

    def __init__(self, client: NodeClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._calls = client, Calls()
        self.shelf: list[ModelItem] = []
        self.others: list[ModelItem] = []
        self.offers: list[ModelItem] = []
        self.found: list[ModelItem] = []
        self.starter: Starter | None = None  # the node's current recommendation
        self.none_fits = False  # the node recommends none, because no model fits
        self.searched = ""  # the words that led to `found`
        self.has_shelf = False
        self._has_reported = False  # the missing catalog was already reported
        self._files_of: ModelItem | None = None

    @property
    def searching(self) -> bool:
        return self._calls.running(SEARCH)

    def item(self, key: str) -> ModelItem | None:
        """Return the model with this key, or None if it is not listed."""
        every = (*self.shelf, *self.others, *self.offers, *self.found)
        return next((item for item in every if item.key == key), None)

    def refresh(self) -> None:
        """Request the local models, the catalog and a recommendation."""
        client, calls = self._client, self._calls
        calls.keep(SHELF, client.get("/models", self._shelf_loaded, self.failed.emit, answer=Models))
        calls.keep(CATALOG, client.get("/catalog", self._offers_loaded, self._no_offers, answer=Catalog))
        self.ask_starter()

    def ask_starter(self) -> None:
        """Request a recommendation based on the lent memory. If the request fails, no model is recommended."""
        call = self._client.get("/starter", self._starter_loaded, self._no_starter, answer=StarterResponse)
        self._calls.keep(STARTER, call)

    def recommended(self) -> ModelItem | None:
        """Return the recommended catalog model, or None if there is none or it is already local."""
        item = self.item(f"offer:{self.starter.id}") if self.starter is not None else None
        if item is None or any(file.on_shelf for file in item.files):
            return None
        return item

    def search_other_apps(self) -> None:
        """Search the folders of other apps, which takes a few seconds. If this fails, their section stays hidden."""
        self._calls.keep(FOUND, self._client.get("/found", self._others_loaded, answer=FoundFiles))

    def search(self, words: str) -> None:
        """Search Hugging Face for these words."""
        path = f"/search?q={quote(words, safe='')}&limit={MAX_RESULTS}"
        self.searched, self.found = words, []
        call = self._client.get(path, self._found_loaded, self._search_failed, answer=HubSearch)
        self._calls.keep(SEARCH, call)
        self.search_changed.emit()
        self.changed.emit()

    def stop_search(self) -> None:
        self._calls.end(SEARCH)
        self.searched = ""
        self.found = []
        self.search_changed.emit()
        self.changed.emit()

    def ask_files(self, item: ModelItem) -> None:
        """Request the files of a search result."""
        if item.remote is None:
            return
        self._files_of = item
        path = f"/search/files?repo={quote(item.remote.repository, safe='')}"
        call = self._client.get(path, self._files_listed, self.failed.emit, answer=HubListing)
        self._calls.keep(FILES, call)

    def end(self) -> None:
        self._calls.end_all()

    def _shelf_loaded(self, answer: Models) -> None:
        self._calls.done(SHELF)
        items = [shelf_item(model) for model in answer.models]
        self.shelf = sorted(items, key=lambda item: (item.is_guide, item.name.casefold()))
        self.has_shelf = True
        self.changed.emit()

    def _offers_loaded(self, answer: Catalog) -> None:
        self._calls.done(CATALOG)
        self.offers = [offer_item(offer) for offer in answer.models]
        self.changed.emit()

    def _starter_loaded(self, answer: StarterResponse) -> None:
        self._calls.done(STARTER)
        self._set_starter(answer.starter, none_fits=answer.starter is None)

    def _no_starter(self, _: AppError) -> None:
        self._calls.done(STARTER)
        self._set_starter(None, none_fits=False)

    def _set_starter(self, starter: Starter | None, *, none_fits: bool) -> None:
        before = self.starter, self.none_fits
        self.starter, self.none_fits = starter, none_fits
        if (starter, none_fits) != before:
            self.starter_changed.emit()

    def _no_offers(self, error: AppError) -> None:
        """Report once that the catalog is unavailable. The rest of the page works without it."""
        self._calls.done(CATALOG)
        if not self._has_reported:
            self._has_reported = True
            self.failed.emit(error)

    def _others_loaded(self, answer: FoundFiles) -> None:
        self._calls.done(FOUND)
        self.others = [other_item(file) for file in answer.files if not file.on_shelf]
        self.changed.emit()

    def _found_loaded(self, answer: HubSearch) -> None:
        self._calls.done(SEARCH)
        self.found = [found_item(model) for model in answer.models]
        self.search_changed.emit()
        self.changed.emit()

    def _search_failed(self, error: AppError) -> None:
        self._calls.done(SEARCH)
        self.searched = ""
        self.search_changed.emit()
        self.failed.emit(error)

    def _files_listed(self, listing: HubListing) -> None:
        self._calls.done(FILES)
        item = self._files_of
        if item is None or not isinstance(item.facts, HubModel):
            return
        searched = {name: getattr(item.facts, name) for name in HubModel.__struct_fields__}
        unknown = {name: value for name, value in searched.items() if getattr(listing, name) is None}
        whole = replace(item, facts=msgspec.structs.replace(listing, **unknown))
        self.found = [whole if other.key == item.key else other for other in self.found]
        self.files_loaded.emit(whole)


def filtered(items: list[ModelItem], words: str) -> list[ModelItem]:
    """Return the models that match the search field."""
    return [item for item in items if matches(item, words)] if words.strip() else items
