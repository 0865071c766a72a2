"""A table of facts that can be sorted and read aloud: a row for each thing, as wide as its words."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
)
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from app.gui import theme as sizes
from app.gui.household import drawn
from app.gui.theme import Theme

Index = QModelIndex | QPersistentModelIndex
Role = Qt.ItemDataRole
SORT_ROLE = int(Role.UserRole)
NOWHERE = QModelIndex()
LEAST_NAME = 136
ACROSS = Qt.Orientation.Horizontal


@dataclass(frozen=True, slots=True)
class Column:
    """A title, the words of a cell, and what it is sorted by; figures stand at the right."""

    title: str
    shown: Callable[[Any], str]
    value: Callable[[Any], float | str]
    figure: bool = True


class FactModel(QAbstractTableModel):
    """A row for each fact. key_of: what stays the same while it changes."""

    def __init__(
        self, columns: Sequence[Column], key_of: Callable[[Any], Hashable],
        tip_of: Callable[[Any], str],
    ) -> None:  # fmt: skip
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
        return self._tip_of(fact) if role == Role.ToolTipRole else None


class FactTable(QTableView):
    """Sorted by its first column at first."""

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

    def fit_columns(self) -> None:
        """As wide as their words; the names get the rest."""
        header, gap = self.horizontalHeader(), 2 * self._theme.px(sizes.S)
        taken = 0
        for place in range(1, self._model.columnCount()):
            title = drawn.width(str(self._model.headerData(place, ACROSS)), header.font())
            wide = max(round(title) + gap, self.sizeHintForColumn(place))
            header.resizeSection(place, wide)
            taken += header.sectionSize(place)
        left = self.viewport().width() - taken
        header.resizeSection(0, max(left, self._theme.px(LEAST_NAME)))

    def _measure(self) -> None:
        self.verticalHeader().setDefaultSectionSize(self._theme.px(sizes.CONTROL_HEIGHT))
        self._model.dataChanged.emit(NOWHERE, NOWHERE)


def _aligned(column: Column) -> Qt.AlignmentFlag:
    return drawn.RIGHT if column.figure else drawn.LEFT
