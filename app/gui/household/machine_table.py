"""The same facts as the map, as a table that can be sorted and read aloud."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QCoreApplication,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from app.gui import formats
from app.gui import theme as sizes
from app.gui.household import drawn, words
from app.gui.household.facts import LinkFacts, MachineFacts
from app.gui.icons import icon
from app.gui.theme import Theme

Index = QModelIndex | QPersistentModelIndex
Role = Qt.ItemDataRole
SORT_ROLE = int(Role.UserRole)
NOWHERE = QModelIndex()
SHARE = 8  # the column
LEAST_NAME = 136
ACROSS = Qt.Orientation.Horizontal


@dataclass(frozen=True, slots=True)
class Column:
    """A title, the words of a cell, and what it is sorted by; figures stand at the right."""

    title: str
    shown: Callable[[MachineFacts], str]
    value: Callable[[MachineFacts], float | str]
    figure: bool = True


class MachineModel(QAbstractTableModel):
    """A row for each machine."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._columns = _columns()
        self.machines: tuple[MachineFacts, ...] = ()

    def show_machines(self, machines: Sequence[MachineFacts]) -> None:
        """Only what changed is told, so that a selection stays."""
        before, self_now = [one.id for one in self.machines], tuple(machines)
        if before != [one.id for one in self_now]:
            self.beginResetModel()
            self.machines = self_now
            self.endResetModel()
            return
        for row, (old, new) in enumerate(zip(self.machines, self_now, strict=True)):
            if old != new:
                self.machines = (*self.machines[:row], new, *self.machines[row + 1 :])
                last = self.index(row, len(self._columns) - 1)
                self.dataChanged.emit(self.index(row, 0), last)

    def rowCount(self, parent: Index = NOWHERE) -> int:  # noqa: N802  Qt's name
        return 0 if parent.isValid() else len(self.machines)

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
        machine, column = self.machines[index.row()], self._columns[index.column()]
        if role in (Role.DisplayRole, Role.AccessibleTextRole):
            return column.shown(machine)
        if role == SORT_ROLE:
            return column.value(machine)
        if role == Role.TextAlignmentRole:
            return _aligned(column)
        if role == Role.ToolTipRole:
            return drawn.tip(machine.name, machine.device, words.why(machine))
        if role == Role.DecorationRole and index.column() == 1:
            state = words.state(machine)
            return icon(state.icon, self._theme.colour(state.colour).name())
        return None


class MachineTable(QTableView):
    """Chosen, opened and left out as on the map."""

    chosen = Signal(str)
    opened = Signal(str)
    toggled = Signal(str)
    menu_wanted = Signal(str, QPoint)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._model = theme, MachineModel(theme)
        sorted_by = QSortFilterProxyModel(self)
        sorted_by.setSourceModel(self._model)
        sorted_by.setSortRole(SORT_ROLE)
        sorted_by.setSortCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._sorted = sorted_by
        self.setModel(sorted_by)
        self.setAccessibleName(self.tr("Machines of the household"))
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
        self.selectionModel().selectionChanged.connect(self._selection_changed)
        self.doubleClicked.connect(lambda index: self.opened.emit(self._machine(index)))
        theme.changed.connect(self._measure)
        self._measure()

    def show_machines(self, machines: Sequence[MachineFacts]) -> None:
        was = self.selected
        self._model.show_machines(machines)
        self.setColumnHidden(
            SHARE, all(one.link is None or one.link.share is None for one in machines)
        )
        if self.selected != was:
            self.select(was)
        self._fit_columns()

    @property
    def selected(self) -> str:
        rows = self.selectionModel().selectedRows()
        return self._machine(rows[0]) if rows else ""

    def select(self, machine: str) -> None:
        """Choose a row; "" for none."""
        if machine == self.selected:
            return
        for row, one in enumerate(self._model.machines):
            if one.id == machine:
                self.setCurrentIndex(self._sorted.mapFromSource(self._model.index(row, 0)))
                return
        self.clearSelection()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802  Qt's name
        if self.selected:
            self.menu_wanted.emit(self.selected, event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        key = event.key()
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.selected:
            self.opened.emit(self.selected)
        elif key == Qt.Key.Key_Space and self.selected:
            self.toggled.emit(self.selected)
        else:
            super().keyPressEvent(event)

    def _machine(self, index: Index) -> str:
        source = self._sorted.mapToSource(index)
        return self._model.machines[source.row()].id if source.isValid() else ""

    def _selection_changed(self) -> None:
        self.chosen.emit(self.selected)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._fit_columns()

    def _fit_columns(self) -> None:
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


def _columns() -> tuple[Column, ...]:
    return (
        Column(_tr("Machine"), _name, lambda one: one.name, figure=False),
        Column(
            _tr("State"), lambda one: words.state(one).word, lambda one: one.state, figure=False
        ),
        Column(_tr("Held of lent"), words.memory, lambda one: one.used_bytes),
        Column(_tr("In all"), _total, lambda one: one.total_bytes),
        Column(_tr("Layers"), _layers, lambda one: one.layers[0][0] if one.layers else -1),
        Column(_tr("Link"), _rate, _fact("slower_bytes_per_s")),
        Column(_tr("Round trip"), _round_trip, _fact("round_trip_s")),
        Column(_tr("By"), _by, _by, figure=False),
        Column(_tr("Share"), _share, _fact("share"), figure=False),
    )


def _name(one: MachineFacts) -> str:
    """With what it is for us, as the map says it."""
    parts = ((one.this, _tr("this machine")), (one.host, _tr("host")))
    told = ", ".join(word for is_so, word in parts if is_so)
    return f"{one.name} ({told})" if told else one.name


def _total(one: MachineFacts) -> str:
    return formats.size(one.total_bytes) if one.total_bytes else _tr("not known")


def _layers(one: MachineFacts) -> str:
    if one.layers and one.replica is None:
        return words.layers(one.layers).partition(" ")[2]
    return words.holds(one) or _tr("none")


def _rate(one: MachineFacts) -> str:
    return _of_link(one, lambda link: _told(link.slower_bytes_per_s, formats.rate))


def _fact(name: str) -> Callable[[MachineFacts], float]:
    def value(one: MachineFacts) -> float:
        found = getattr(one.link, name) if one.link else None
        return -1.0 if found is None else float(found)

    return value


def _round_trip(one: MachineFacts) -> str:
    return _of_link(one, lambda link: _told(link.round_trip_s, words.milliseconds))


def _by(one: MachineFacts) -> str:
    return _of_link(one, lambda link: words.kind(link.worst_kind).word if link.kind else "")


def _share(one: MachineFacts) -> str:
    return _of_link(one, lambda link: "" if link.share is None else words.share(link.share).word)


def _of_link(one: MachineFacts, told: Callable[[LinkFacts], str]) -> str:
    return told(one.link) if one.link else ""


def _told(value: float | None, words_of: Callable[[float], str]) -> str:
    return _tr("not measured") if value is None else words_of(value)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Household", text)
