"""The left side of the Models page, with the search field, the filters, and the models grouped in sections."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QComboBox, QListView, QSizePolicy, QStackedWidget

from app.api.plans import LoadedEmbedder, LoadedModel
from app.gui.app.app_context import AppContext
from app.gui.app.navigation import LOG_PAGE
from app.gui.look import sizes
from app.gui.look.formats import GIB, whole_size
from app.gui.models.badges import badges
from app.gui.models.library import Library, filtered
from app.gui.models.model_item import ModelItem
from app.gui.models.model_rows import ITEM_ROLE, LINE_HEIGHT, Row, RowPainter, Rows
from app.gui.models.ranking import Fit, fit_of, rank
from app.gui.models.verdicts import VerdictLoader
from app.gui.widgets.buttons import button
from app.gui.widgets.fields import DropDown, SearchField
from app.gui.widgets.labels import FullHeightFrame
from app.gui.widgets.layouts import EmptyState, column, row

translate = QCoreApplication.translate
ALL, FITS, HERE = "all", "fits", "here"
MIN_FILTER_CHARACTERS = 8  # minimum number of visible characters of a filter, so that two of them share a row
MIN_QUERY_CHARACTERS = 2  # minimum number of characters for an online search
MIN_ROWS = 2  # minimum number of fully visible rows; if less is available, the page scrolls


class ModelList(FullHeightFrame):
    """The model list with its search field and filters. `picked` is emitted with the model that the user selects."""

    picked = Signal(object)  # ModelItem
    entered = Signal()  # Enter was pressed on a row, or the row was double-clicked

    def __init__(self, services: AppContext, library: Library, verdict_loader: VerdictLoader) -> None:
        super().__init__()
        self._services, self._library, self._verdict_loader = services, library, verdict_loader
        self.chosen_key = ""
        self._make_fields()
        self._make_list()
        self._online = button("", self._search_online, "link")
        self._online.hide()
        self._all = button(self.tr("Show all"), self.show_all)
        self._log = button(self.tr("Show log"), lambda: services.go(LOG_PAGE))
        self._empty = EmptyState("", "", self._all, self._log)
        self._stack = _Stack()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self._empty)
        # two rows at any width, so that the list never moves when the details beside it grow
        filters = row(self.filter, self.size_filter, gap=sizes.S)
        box = column(self.search, filters, gap=sizes.S)
        box.addLayout(row(self._online, None))
        box.addWidget(self._stack, 1)
        self.setLayout(box)
        library.changed.connect(self.refresh)
        library.starter_changed.connect(self.refresh)
        library.search_changed.connect(self._update_search)
        verdict_loader.changed.connect(self.refresh)
        services.pool.changed.connect(self.refresh_marks)
        services.pool.link_changed.connect(self.refresh_marks)  # without a node, nothing is being loaded
        self._marked: object = None  # the state shown by the marks: loaded models, and the one that failed to load
        self._recommended: ModelItem | None = None  # the catalog entry recommended for this household
        self.refresh()
        self._update_search()
        services.theme.changed.connect(self._paint)
        self._paint()

    def select(self, key: str) -> bool:
        """Select the model with this key. Return whether it is listed."""
        place = self.rows.place(key)
        if not place.isValid():
            return False
        self.view.setCurrentIndex(place)
        self.view.scrollTo(place)
        return True

    def show_all(self) -> None:
        self.search.clear()
        self.filter.setCurrentIndex(0)
        self.size_filter.setCurrentIndex(0)

    def items(self) -> list[ModelItem]:
        """Return all models, including those that are filtered out."""
        library = self._library
        return [*library.shelf, *library.others, *library.offers, *library.found]

    def refresh(self) -> None:
        """Rebuild the list from the current library and verdicts, preserving the selection."""
        model_filter = self._services.model_filter
        model_filter.words, model_filter.kind = self.search.text(), self.filter.currentIndex()
        model_filter.size = self.size_filter.currentIndex()
        rows = self._sections()
        blocked = self.view.selectionModel().blockSignals(True)
        scrolled, before = self.view.verticalScrollBar().value(), self._top_of_chosen()
        self.rows.show(rows)
        place = self.rows.place(self.chosen_key)
        self.view.setCurrentIndex(place)
        self._hold(scrolled, before)
        self.view.selectionModel().blockSignals(blocked)
        self.view.viewport().update()
        shown = [row.item for row in rows if row.item is not None]
        self._stack.setCurrentIndex(0 if shown else 1)
        self._update_empty()
        if not place.isValid() and shown and not self.chosen_key and self._library.has_shelf:
            self.select(shown[0].key)

    def _top_of_chosen(self) -> int | None:
        """Return the y coordinate of the selected row, or None if the row is not visible."""
        place = self.rows.place(self.chosen_key)
        top = self.view.visualRect(place).top() if place.isValid() else -1
        return top if 0 <= top < self.view.viewport().height() else None

    def _hold(self, scrolled: int, before: int | None) -> None:
        """Keep the selected row, or otherwise the scroll position, in place after the rows have changed."""
        bar, now = self.view.verticalScrollBar(), self._top_of_chosen()
        self.view.doItemsLayout()
        place = self.rows.place(self.chosen_key)
        if before is not None and place.isValid():
            bar.setValue(bar.value() + self.view.visualRect(place).top() - before)
        elif now is None:
            bar.setValue(scrolled)

    def refresh_marks(self) -> None:
        """Rebuild the list if the loaded models have changed."""
        snapshot = self._services.pool.now
        now = [(loaded.model, loaded.state) for loaded in self._loaded_models()], snapshot.load_failed
        if now != self._marked:
            self._marked = now
            self.refresh()

    def _loaded_models(self) -> list[LoadedModel | LoadedEmbedder]:
        snapshot = self._services.pool.now
        return [*snapshot.models, *([snapshot.embeds] if snapshot.embeds else [])]

    def _make_fields(self) -> None:
        self.search = SearchField(self._services.theme)
        self.search.setPlaceholderText(self.tr("Search"))
        self.search.setAccessibleName(self.tr("Search models"))
        self.search.setMaxLength(200)
        self.search.returnPressed.connect(self._search_online)
        self.filter = DropDown()
        self.filter.setAccessibleName(self.tr("Show"))
        self.filter.addItem(self.tr("All models"), ALL)
        self.filter.addItem(self.tr("Models that fit"), FITS)
        self.filter.addItem(self.tr("On this computer"), HERE)
        self.size_filter = DropDown()
        self.size_filter.setAccessibleName(self.tr("Size"))
        self.size_filter.addItem(self.tr("Any size"), None)
        for size in CLASSES:
            self.size_filter.addItem(size.words, size)
        model_filter = self._services.model_filter
        self.search.setText(model_filter.words)
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        for box, place in ((self.filter, model_filter.kind), (self.size_filter, model_filter.size)):
            box.setSizeAdjustPolicy(policy)
            box.setMinimumContentsLength(MIN_FILTER_CHARACTERS)
            box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            box.setCurrentIndex(place)
            box.currentIndexChanged.connect(lambda _: self.refresh())
        self.search.textChanged.connect(self._searched)
        find = QShortcut(QKeySequence.StandardKey.Find, self, self.search.setFocus)
        find.setContext(Qt.ShortcutContext.WindowShortcut)

    def _make_list(self) -> None:
        self.rows = Rows(self)
        self.view = QListView()
        self.view.setAccessibleName(self.tr("Models"))
        self.view.setModel(self.rows)
        self.view.setItemDelegate(RowPainter(self._services.theme, self.view))
        self.view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.setMouseTracking(True)
        self.view.setLayoutMode(QListView.LayoutMode.Batched)  # the list may have thousands of rows
        self.view.selectionModel().currentChanged.connect(self._current)
        self.view.activated.connect(lambda _: self.entered.emit())

    def _sections(self) -> list[Row]:
        library, words = self._library, self.search.text()
        kind = str(self.filter.currentData())
        size: SizeClass | None = self.size_filter.currentData()
        self._recommended = best = library.recommended()
        elsewhere = [] if kind == HERE else library.offers
        apps = self.tr("Found in other apps: {count}")
        sections = [
            (self.tr("On this computer"), self._ranked(filtered(library.shelf, words))),
            (apps.format(count=len(library.others)), self._ranked(filtered(library.others, words))),
            *self._by_fit(_first(best, self._ranked(filtered(elsewhere, words))), best),
            (self.tr("On Hugging Face"), [] if kind == HERE else library.found),
        ]
        rows: list[Row] = []
        for heading, items in sections:
            shown = [self._row(item) for item in items]
            if kind == FITS:
                shown = [row for row in shown if _may_fit(row)]
            if size is not None:
                shown = [row for row in shown if row.item is not None and size.holds(row.item)]
            if shown:
                rows += [Row(heading), *shown]
        return rows

    def _ranked(self, items: list[ModelItem]) -> list[ModelItem]:
        """Sort models by how well they fit.

        The Guide comes last, because its only purpose is explaining the app.
        """
        return sorted(items, key=lambda item: (item.is_guide, *rank(item, self._verdict_loader.of(item))))

    def _by_fit(self, items: list[ModelItem], best: ModelItem | None) -> list[tuple[str, list[ModelItem]]]:
        """Divide the catalog into sections by how well its models fit this household.

        Return the heading and models of each.
        """
        fits = {item.key: fit_of(item, self._verdict_loader.of(item)) for item in items}
        if best is not None and best.key in fits:
            fits[best.key] = Fit.WELL  # the node recommends it, whatever was measured since
        parts = (
            (self.tr("Catalog: fits your household"), (Fit.WELL, Fit.SLOW, Fit.TIGHT)),
            (self.tr("Catalog: fits with limits"), (Fit.LIMITED,)),
            (self.tr("Catalog: size not known yet"), (Fit.UNKNOWN,)),
            (self.tr("Catalog: too big for your household"), (Fit.TOO_BIG,)),
        )
        if all(fit is Fit.UNKNOWN for fit in fits.values()):
            return [(self.tr("Catalog"), items)]
        return [(heading, [item for item in items if fits[item.key] in part]) for heading, part in parts]

    def _update_empty(self) -> None:
        """Update the placeholder that explains why the list is empty and what the user can do."""
        here, words = self._library.has_shelf, self.search.text().strip()
        self._all.setVisible(here)
        self._log.setVisible(not here)
        if not here:
            title = self.tr("No models to show yet")
            sentence = self.tr("Your models appear here when the background service is running.")
        else:
            title = self.tr("No model matches")
            sentence = self._why_none(words)
        self._empty.title.setText(title)
        self._empty.sentence.setText(sentence)

    def _why_none(self, words: str) -> str:
        has_size = self.size_filter.currentData() is not None
        if words and not (has_size and filtered(self.items(), words)):
            return self.tr("No model here has that name. Search for it online, or show all models.")
        if has_size:
            return self.tr("No model here has this size. Choose another size, or show all models.")
        return self.tr("None of these models fits in the memory that is free now.")

    def _row(self, item: ModelItem) -> Row:
        loaded = next((loaded for loaded in self._loaded_models() if loaded.model == item.name), None)
        failed = self._services.pool.now.load_failed
        mark = ""
        if item.is_here and loaded is not None:
            words = {"ready": self.tr("Loaded"), "loading": self.tr("Loading…"), "recovering": self.tr("Rebuilding")}
            mark = words.get(loaded.state, self.tr("Lost"))
        elif item.is_here and failed is not None and item.name == failed.model:
            mark = self.tr("Could not be loaded")
        elif item.shelf is not None and item.shelf.away:
            mark = self.tr("Disk not connected")
        elif item.is_missing:
            mark = self.tr("File missing")
        elif self._recommended is not None and item.key == self._recommended.key:
            mark = self.tr("Recommended")
        return Row(item=item, judgment=self._verdict_loader.of(item), mark=mark, badges=tuple(badges(item)))

    def _current(self, index: QModelIndex, _: QModelIndex) -> None:
        row: Row | None = index.data(ITEM_ROLE) if index.isValid() else None
        if row is not None and row.item is not None:
            self.chosen_key = row.item.key
            self.picked.emit(row.item)

    def _searched(self, words: str) -> None:
        if self._library.searched and words.strip() != self._library.searched:
            self._library.stop_search()
        self._update_search()
        self.refresh()

    def _search_online(self) -> None:
        words = self.search.text().strip()
        if self._library.searching:
            self._library.stop_search()
        elif len(words) >= MIN_QUERY_CHARACTERS and words != self._library.searched:
            self._library.search(words)

    def _update_search(self) -> None:
        words = self.search.text().strip()
        if self._library.searching:
            text = self.tr("Stop searching huggingface.co")
        elif self._library.searched == words and words:
            none = not self._library.found
            text = self.tr("Nothing found on Hugging Face") if none else ""
        else:
            text = self.tr("Search Hugging Face for “{words}”").format(words=words)
        self._online.setText(text)
        self._online.setEnabled(self._library.searched != words or self._library.searching)
        self._online.setVisible(len(words) >= MIN_QUERY_CHARACTERS and bool(text))

    def _paint(self) -> None:
        self.view.setMinimumHeight(MIN_ROWS * self._services.theme.px(LINE_HEIGHT) + sizes.XS)
        self.view.doItemsLayout()
        self.view.viewport().update()


class _Stack(QStackedWidget):
    """A stack whose minimum size is that of the visible page, because a hidden page may report an outdated size."""

    def __init__(self) -> None:
        super().__init__()
        self.currentChanged.connect(self.updateGeometry)

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        if (shown := self.currentWidget()) is None:
            return super().minimumSizeHint()
        hint = shown.minimumSizeHint()
        return QSize(hint.width(), shown.minimumHeight() or hint.height())


@dataclass(frozen=True, slots=True)
class SizeClass:
    """A filter for models whose file is larger than `min_bytes` and no larger than `max_bytes`."""

    min_bytes: float
    max_bytes: float

    @property
    def words(self) -> str:
        if not self.min_bytes:
            return translate("Models", "Up to {size}").format(size=whole_size(self.max_bytes))
        if math.isinf(self.max_bytes):
            return translate("Models", "Over {size}").format(size=whole_size(self.min_bytes))
        return whole_size(self.min_bytes, self.max_bytes)

    def holds(self, item: ModelItem) -> bool:
        """Return whether a model passes the filter. A model of unknown size does not."""
        return self.min_bytes < item.listed_bytes <= self.max_bytes


# Suited to a small computer, a typical one or a graphics card, a large one, and several combined.
CLASSES = (
    SizeClass(0, 4 * GIB),
    SizeClass(4 * GIB, 16 * GIB),
    SizeClass(16 * GIB, 48 * GIB),
    SizeClass(48 * GIB, math.inf),
)


def _first(item: ModelItem | None, items: list[ModelItem]) -> list[ModelItem]:
    """Move a model to the front of a list, preserving the order of the others."""
    return [item, *(other for other in items if other.key != item.key)] if item is not None else items


def _may_fit(row: Row) -> bool:
    judgment = row.judgment
    return judgment is not None and (judgment.fits or bool(judgment.quantization))
