"""The sortable tables of the Pool page, one for machines (with the same facts as the map) and one for lender links."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QCoreApplication,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QSize,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QSizePolicy,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app.gui.look import drawing, formats, sizes
from app.gui.look.drawing import icon
from app.gui.look.theme import Theme
from app.gui.pool import machine_words
from app.gui.pool.machine_facts import LenderLink, LinkFacts, MachineFacts
from app.gui.widgets.labels import label, tooltip
from app.gui.widgets.layouts import column

Index = QModelIndex | QPersistentModelIndex
Role = Qt.ItemDataRole
SORT_ROLE = int(Role.UserRole)
NOWHERE = QModelIndex()
NAME = 140  # width of the name column down to which other columns are elided first
LEAST_NAME, LEAST_WORDS = 128, 80  # minimum widths, below which the table scrolls horizontally
ACROSS = Qt.Orientation.Horizontal


@dataclass(frozen=True, slots=True)
class Column:
    """A table column, with its title and functions for the text and sort key of a cell. Figures are right-aligned."""

    title: str
    shown: Callable[[Any], str]
    value: Callable[[Any], float | str]
    figure: bool = True


class _Middle(QStyledItemDelegate):
    """A delegate that elides long machine names in the middle, because they often differ only at the end.

    If the name itself fits, only the note in parentheses after it is elided.
    """

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
    """A Qt table model with one row for each fact. `key_of` identifies a fact across updates."""

    def __init__(
        self, columns: Sequence[Column], key_of: Callable[[Any], Hashable], tip_of: Callable[[Any], str]
    ) -> None:
        super().__init__()
        self._columns, self._key_of, self._tip_of = columns, key_of, tip_of
        self.facts: tuple[Any, ...] = ()

    def show_facts(self, facts: Sequence[Any]) -> None:
        """Show these facts. If the keys are unchanged, only changed rows are reported, to preserve the selection."""
        now = tuple(facts)
        if list(map(self._key_of, self.facts)) != list(map(self._key_of, now)):
            self.beginResetModel()
            self.facts = now
            self.endResetModel()
            return
        for row, (old, new) in enumerate(zip(self.facts, now, strict=True)):
            if old != new:
                self.facts = (*self.facts[:row], new, *self.facts[row + 1 :])
                last = self.index(row, len(self._columns) - 1)
                self.dataChanged.emit(self.index(row, 0), last)

    def restyled(self) -> None:
        """Notify views that all cells have changed in size, although not in text."""
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
        """Return the full text of a text cell, or the row's tooltip for any other cell."""
        fact, column = self.facts[index.row()], self._columns[index.column()]
        text = "" if column.figure or not index.column() else column.shown(fact)
        return tooltip(text) if text else self._tip_of(fact)

    def is_figure(self, column: int) -> bool:
        return self._columns[column].figure


class FactTable(QTableView):
    """An accessible, sortable table. It is initially sorted by the first column."""

    name_share = 0.0  # fraction of the width reserved for long names before other texts are elided

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
        """Make columns as wide as their text, and give the remaining width to the names.

        If space is short, the widest columns are narrowed first. This does nothing while the table is hidden,
        because it has to measure every cell.
        """
        if not self.isVisible():
            return
        header, room = self.horizontalHeader(), self.viewport().width()
        name = max(self._theme.px(NAME), min(self.sizeHintForColumn(0), round(self.name_share * room)))
        shown = [n for n in range(1, self._model.columnCount()) if not self.isColumnHidden(n)]
        wide = {place: max(self._title_width(place), self.sizeHintForColumn(place)) for place in shown}
        for place in sorted(shown, key=lambda index: -wide[index]):
            over = sum(wide.values()) + name - room
            if over > 0 and not self._model.is_figure(place):
                fewest = max(self._title_width(place), self._theme.px(LEAST_WORDS))
                wide[place] = min(wide[place], max(fewest, wide[place] - over))
        for place in shown:
            header.resizeSection(place, wide[place])
        header.resizeSection(0, max(room - sum(wide.values()), self._theme.px(LEAST_NAME)))

    def _title_width(self, place: int) -> int:
        """Return the width that a column title needs."""
        title = drawing.text_width(str(self._model.headerData(place, ACROSS)), self.horizontalHeader().font())
        return round(title) + 2 * self._theme.cell

    def _measure(self) -> None:
        self.verticalHeader().setDefaultSectionSize(self._theme.px(sizes.CONTROL_HEIGHT))
        self._model.restyled()


def _aligned(column: Column) -> Qt.AlignmentFlag:
    return drawing.RIGHT if column.figure else drawing.LEFT


COMPUTES, SHARE = 5, 10  # column numbers
LEAST_ROWS = 3


class MachineModel(FactModel):
    """A table model with one row for each machine and an icon for its state."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(_machine_columns(), lambda machine: machine.id, _machine_tip)
        self._theme = theme

    def data(self, index: Index, role: int = int(Role.DisplayRole)) -> Any:
        if role == Role.DecorationRole and index.column() == 1:
            state = machine_words.state_badge(self.facts[index.row()])
            return icon(state.icon, self._theme.color(state.color).name())
        if role == Role.AccessibleDescriptionRole:
            return machine_words.state_reason(self.facts[index.row()])
        return super().data(index, role)


class MachineTable(FactTable):
    """The table of machines. The keys that select, open and leave out a machine are the same as on the map."""

    chosen = Signal(str)
    opened = Signal(str)
    toggled = Signal(str)
    menu_wanted = Signal(str, QPoint)

    def __init__(self, theme: Theme) -> None:
        name = QCoreApplication.translate("MachineTable", "Machines in the household")
        super().__init__(theme, MachineModel(theme), name)
        self.selectionModel().selectionChanged.connect(self._selection_changed)
        self.doubleClicked.connect(lambda index: self.opened.emit(self._machine(index)))

    def show_machines(self, machines: Sequence[MachineFacts]) -> None:
        was = self.selected
        self._model.show_facts(machines)
        self.setColumnHidden(SHARE, all(machine.link is None or machine.link.share is None for machine in machines))
        self.setColumnHidden(COMPUTES, all(machine.share is None for machine in machines))
        if self.selected != was:
            self.select(was)
        self.fit_columns()
        self.updateGeometry()

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        """Return the height of a few rows. If there is less space, the whole page scrolls."""
        rows = min(LEAST_ROWS, self._model.rowCount()) * self.verticalHeader().defaultSectionSize()
        bar = self.horizontalScrollBar().sizeHint().height()
        around = self.horizontalHeader().sizeHint().height() + 2 * self.frameWidth()
        return QSize(super().minimumSizeHint().width(), rows + bar + around)

    @property
    def selected(self) -> str:
        rows = self.selectionModel().selectedRows()
        return self._machine(rows[0]) if rows else ""

    def select(self, machine: str) -> None:
        """Select the row of a machine. "" clears the selection."""
        if machine == self.selected:
            return
        for row, facts in enumerate(self._model.facts):
            if facts.id == machine:
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
        return str(self._model.facts[source.row()].id) if source.isValid() else ""

    def _selection_changed(self) -> None:
        self.chosen.emit(self.selected)


def _machine_tip(machine: MachineFacts) -> str:
    return tooltip(
        machine.name, machine.hardware.device, machine_words.own_use_note(machine), machine_words.state_reason(machine)
    )


def _machine_columns() -> tuple[Column, ...]:
    return (
        Column(_tr("Machine"), _machine_name, lambda machine: machine.name, figure=False),
        Column(_tr("State"), _state, lambda machine: machine.state, figure=False),
        Column(_tr("Used / lent"), machine_words.lent, lambda machine: machine.memory.used - machine.memory.own),
        Column(_tr("Total"), _total_memory, lambda machine: machine.memory.total),
        Column(_tr("Layers"), _layers, lambda machine: machine.held.layers[0][0] if machine.held.layers else -1),
        Column(_tr("Computing"), machine_words.compute_share, _work),
        Column(_tr("Link"), _link_rate, _link_value("slower_bytes_per_s")),
        Column(_tr("Round trip"), _round_trip, _link_value("round_trip_s")),
        Column(_tr("Age"), _age, _link_value("measured_at")),
        Column(_tr("Via"), _carrier, _carrier, figure=False),
        Column(_tr("Share"), _share, _link_value("share")),
    )


def _machine_name(machine: MachineFacts) -> str:
    """Return the name of a machine, followed by `(this machine)`, `(host)` or both."""
    parts = ((machine.this, _tr("this machine")), (machine.host, _tr("host")))
    notes = ", ".join(word for is_so, word in parts if is_so)
    return f"{machine.name} ({notes})" if notes else machine.name


def _state(machine: MachineFacts) -> str:
    return machine_words.state_badge(machine).word


def _work(machine: MachineFacts) -> float:
    return -1.0 if machine.share is None else machine.share


def _total_memory(machine: MachineFacts) -> str:
    return formats.size(machine.memory.total) if machine.memory.total else _tr("unknown")


def _layers(machine: MachineFacts) -> str:
    if machine.held.layers and machine.held.replica is None and not machine.held.by_model:
        return machine_words.layer_ranges(machine.held.layers).partition(" ")[2]
    return machine_words.held_models(machine) or _tr("none")


def _link_rate(machine: MachineFacts) -> str:
    return _of_link(machine, lambda link: _measured(link.slower_bytes_per_s, formats.rate))


def _link_value(name: str) -> Callable[[MachineFacts], float]:
    def value(machine: MachineFacts) -> float:
        figure = getattr(machine.link, name) if machine.link else None
        return -1.0 if figure is None else float(figure)

    return value


def _round_trip(machine: MachineFacts) -> str:
    return _of_link(machine, lambda link: _measured(link.round_trip_s, machine_words.milliseconds))


def _age(machine: MachineFacts) -> str:
    return _of_link(machine, lambda link: machine_words.short_age(link.measured_at) if link.measured_at else "")


def _carrier(machine: MachineFacts) -> str:
    return _of_link(machine, lambda link: machine_words.kind_badge(link.worst_kind).word if link.kind else "")


def _share(machine: MachineFacts) -> str:
    """Return the share as a bare percentage, because the map and the details explain it."""
    return _of_link(machine, lambda link: "" if link.share is None else formats.percent(link.share))


def _of_link(machine: MachineFacts, text_of: Callable[[LinkFacts], str]) -> str:
    return text_of(machine.link) if machine.link else ""


def _measured(value: float | None, words_of: Callable[[float], str]) -> str:
    return _tr("not measured") if value is None else words_of(value)


MOST_ROWS = 4  # visible rows


class ShortTable(FactTable):
    """A table that is only a few rows high. Names are the last to be elided."""

    name_share = 0.35

    def __init__(self, theme: Theme, model: FactModel, title: str) -> None:
        super().__init__(theme, model, title)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_facts(self, facts: Sequence[Any]) -> None:
        self._model.show_facts(facts)
        self.fit_columns()
        self.updateGeometry()

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        rows = min(MOST_ROWS, self._model.rowCount()) * self.verticalHeader().defaultSectionSize()
        bar = self.horizontalScrollBar()
        frame = 2 * self.frameWidth() + (bar.sizeHint().height() if bar.maximum() else 0)
        return QSize(0, rows + self.horizontalHeader().sizeHint().height() + frame)

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return self.sizeHint()


class LinkTable(QWidget):
    """The table of links between lenders, with its title. It is hidden if there are no such links."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        title = self.tr("Links between other machines")
        self.table = ShortTable(theme, FactModel(_link_columns(), lambda link: link.key, _link_tip), title)
        self.setLayout(column(label(title, "muted"), self.table))
        self.hide()

    def show_links(self, links: Sequence[LenderLink]) -> None:
        self.table.show_facts(links)
        self.setVisible(bool(links))


def _link_tip(between: LenderLink) -> str:
    return tooltip(*machine_words.link_details(between))


def _link_columns() -> tuple[Column, ...]:
    unknown = _tr("not measured")
    return (
        Column(_tr("Between"), machine_words.link_ends, machine_words.link_ends, figure=False),
        Column(_tr("Outgoing"), _figure("out_bytes_per_s", formats.rate, unknown), _value("out_bytes_per_s")),
        Column(_tr("Incoming"), _figure("in_bytes_per_s", formats.rate, unknown), _value("in_bytes_per_s")),
        Column(_tr("Round trip"), _figure("round_trip_s", machine_words.milliseconds, unknown), _value("round_trip_s")),
        Column(
            _tr("Via"),
            lambda between: machine_words.link_carrier(between.link),
            lambda between: machine_words.link_carrier(between.link),
            figure=False,
        ),
        Column(_tr("Measured"), _figure("measured_at", machine_words.age, unknown), _value("measured_at")),
    )


def _figure(name: str, text_of: Callable[[float], str], unknown: str) -> Callable[[LenderLink], str]:
    def shown(between: LenderLink) -> str:
        figure = getattr(between.link, name)
        return unknown if figure is None else text_of(figure)

    return shown


def _value(name: str) -> Callable[[LenderLink], float]:
    def value(between: LenderLink) -> float:
        figure = getattr(between.link, name)
        return -1.0 if figure is None else float(figure)

    return value


def _tr(text: str) -> str:
    return QCoreApplication.translate("Household", text)
