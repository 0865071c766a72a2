"""A table of facts that can be sorted and read aloud: a row for each thing, as wide as its words."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QSortFilterProxyModel, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyledItemDelegate, QStyleOptionViewItem, QTableView

from app.gui.look import theme as sizes
from app.gui.look.theme import Theme
from app.gui.pool.map import card_drawing
from app.gui.widgets.labels import tooltip

Index = QModelIndex | QPersistentModelIndex
Role = Qt.ItemDataRole
SORT_ROLE = int(Role.UserRole)
NOWHERE = QModelIndex()
NAME = 140  # words are shortened for it
LEAST_NAME, LEAST_WORDS = 128, 80  # below, the table scrolls sideways
ACROSS = Qt.Orientation.Horizontal


@dataclass(frozen=True, slots=True)
class Column:
    """A title, the words of a cell, and what it is sorted by; figures stand at the right."""

    title: str
    shown: Callable[[Any], str]
    value: Callable[[Any], float | str]
    figure: bool = True


class _Middle(QStyledItemDelegate):
    """A name is told apart by its beginning and its end: what it lacks room for is its middle. What is said of it in
    brackets comes after the name: there the end is left out, as long as the name itself has room."""

    def initStyleOption(  # noqa: N802  Qt's name
        self, option: QStyleOptionViewItem, index: Index
    ) -> None:
        super().initStyleOption(option, index)
        name, bracket, _ = str(option.text).rpartition(" (")
        least = option.fontMetrics.horizontalAdvance(f"{name}{bracket}…") + sizes.XL
        is_named = bool(name) and least <= option.rect.width()
        modes = Qt.TextElideMode
        option.textElideMode = modes.ElideRight if is_named else modes.ElideMiddle


class FactModel(QAbstractTableModel):
    """A row for each fact. key_of: what stays the same while it changes."""

    def __init__(
        self, columns: Sequence[Column], key_of: Callable[[Any], Hashable], tip_of: Callable[[Any], str]
    ) -> None:
        super().__init__()
        self._columns, self._key_of, self._tip_of = columns, key_of, tip_of
        self.facts: tuple[Any, ...] = ()

    def show_facts(self, facts: Sequence[Any]) -> None:
        """Only what changed is told, so that a selection stays."""
        now = tuple(facts)
        if [self._key_of(one) for one in self.facts] != [self._key_of(one) for one in now]:
            self.beginResetModel()
            self.facts = now
            self.endResetModel()
            return
        for row, (old, new) in enumerate(zip(self.facts, now, strict=True)):
            if old != new:
                self.facts = (*self.facts[:row], new, *self.facts[row + 1 :])
                last = self.index(row, len(self._columns) - 1)
                self.dataChanged.emit(self.index(row, 0), last)

    def dressed(self) -> None:
        """Nothing says anything else, and all of it takes another size."""
        if self.facts:
            last = self.index(len(self.facts) - 1, len(self._columns) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    def rowCount(self, parent: Index = NOWHERE) -> int:  # noqa: N802  Qt's name
        return 0 if parent.isValid() else len(self.facts)

    def columnCount(self, parent: Index = NOWHERE) -> int:  # noqa: N802  Qt's name
        return 0 if parent.isValid() else len(self._columns)

    def headerData(  # noqa: N802  Qt's name
        self, section: int, orientation: Qt.Orientation, role: int = int(Role.DisplayRole)
    ) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        column = self._columns[section]
        if role == Role.DisplayRole:
            return column.title
        return _aligned(column) if role == Role.TextAlignmentRole else None

    def data(self, index: Index, role: int = int(Role.DisplayRole)) -> Any:
        fact, column = self.facts[index.row()], self._columns[index.column()]
        if role in (Role.DisplayRole, Role.AccessibleTextRole):
            return column.shown(fact)
        if role == SORT_ROLE:
            return column.value(fact)
        if role == Role.TextAlignmentRole:
            return _aligned(column)
        return self._tip(index) if role == Role.ToolTipRole else None

    def _tip(self, index: Index) -> str:
        """Of a row; of a cell with words these too, which may be shortened."""
        fact, column = self.facts[index.row()], self._columns[index.column()]
        told = "" if column.figure or not index.column() else column.shown(fact)
        return tooltip(told) if told else self._tip_of(fact)

    def is_figure(self, column: int) -> bool:
        return self._columns[column].figure


class FactTable(QTableView):
    """Sorted by its first column at first."""

    name_share = 0.0  # of the room, that a long name gets before words are shortened

    def __init__(self, theme: Theme, model: FactModel, name: str) -> None:
        super().__init__()
        self._theme, self._model = theme, model
        sorted_by = QSortFilterProxyModel(self)
        sorted_by.setSourceModel(model)
        sorted_by.setSortRole(SORT_ROLE)
        sorted_by.setSortCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._sorted = sorted_by
        self.setModel(sorted_by)
        self.setAccessibleName(name)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self._middle = _Middle(self)
        self.setItemDelegateForColumn(0, self._middle)
        self.setSortingEnabled(True)
        self.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        theme.changed.connect(self._measure)
        self._measure()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self.fit_columns()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        self.fit_columns()

    def fit_columns(self) -> None:
        """As wide as their words; the names get the rest. Without room the longest words are shortened first.

        Each cell is measured for that: not while nobody sees them, where the map is shown instead.
        """
        if not self.isVisible():
            return
        header, room = self.horizontalHeader(), self.viewport().width()
        name = max(self._theme.px(NAME), min(self.sizeHintForColumn(0), round(self.name_share * room)))
        shown = [n for n in range(1, self._model.columnCount()) if not self.isColumnHidden(n)]
        wide = {place: max(self._titled(place), self.sizeHintForColumn(place)) for place in shown}
        for place in sorted(shown, key=lambda one: -wide[one]):
            over = sum(wide.values()) + name - room
            if over > 0 and not self._model.is_figure(place):
                fewest = max(self._titled(place), self._theme.px(LEAST_WORDS))
                wide[place] = min(wide[place], max(fewest, wide[place] - over))
        for place in shown:
            header.resizeSection(place, wide[place])
        header.resizeSection(0, max(room - sum(wide.values()), self._theme.px(LEAST_NAME)))

    def _titled(self, place: int) -> int:
        """How wide the title of a column is."""
        title = card_drawing.width(str(self._model.headerData(place, ACROSS)), self.horizontalHeader().font())
        return round(title) + 2 * self._theme.cell

    def _measure(self) -> None:
        self.verticalHeader().setDefaultSectionSize(self._theme.px(sizes.CONTROL_HEIGHT))
        self._model.dressed()


def _aligned(column: Column) -> Qt.AlignmentFlag:
    return card_drawing.RIGHT if column.figure else card_drawing.LEFT
