"""The same facts as the map, as a table that can be sorted and read aloud."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QCoreApplication, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent

from app.gui.look import formats
from app.gui.look.icons import icon
from app.gui.look.theme import Theme
from app.gui.pool import machine_words
from app.gui.pool.fact_table import Column, FactModel, FactTable, Index
from app.gui.pool.link_facts import LinkFacts
from app.gui.pool.machine_facts import MachineFacts
from app.gui.widgets.labels import tooltip

Role = Qt.ItemDataRole
COMPUTES, SHARE = 5, 10  # columns
LEAST_ROWS = 3


class MachineModel(FactModel):
    """A row for each machine, with a picture of its state."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(_machine_columns(), lambda one: one.id, _machine_tip)
        self._theme = theme

    def data(self, index: Index, role: int = int(Role.DisplayRole)) -> Any:
        if role == Role.DecorationRole and index.column() == 1:
            state = machine_words.state(self.facts[index.row()])
            return icon(state.icon, self._theme.colour(state.colour).name())
        if role == Role.AccessibleDescriptionRole:
            return machine_words.why(self.facts[index.row()])
        return super().data(index, role)


class MachineTable(FactTable):
    """Chosen, opened and left out as on the map."""

    chosen = Signal(str)
    opened = Signal(str)
    toggled = Signal(str)
    menu_wanted = Signal(str, QPoint)

    def __init__(self, theme: Theme) -> None:
        name = QCoreApplication.translate("MachineTable", "Machines of the household")
        super().__init__(theme, MachineModel(theme), name)
        self.selectionModel().selectionChanged.connect(self._selection_changed)
        self.doubleClicked.connect(lambda index: self.opened.emit(self._machine(index)))

    def show_machines(self, machines: Sequence[MachineFacts]) -> None:
        was = self.selected
        self._model.show_facts(machines)
        self.setColumnHidden(SHARE, all(one.link is None or one.link.share is None for one in machines))
        self.setColumnHidden(COMPUTES, all(one.share is None for one in machines))
        if self.selected != was:
            self.select(was)
        self.fit_columns()
        self.updateGeometry()

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        """A few rows are seen where the page is low: then all of it scrolls."""
        rows = min(LEAST_ROWS, self._model.rowCount()) * self.verticalHeader().defaultSectionSize()
        bar = self.horizontalScrollBar().sizeHint().height()
        around = self.horizontalHeader().sizeHint().height() + 2 * self.frameWidth()
        return QSize(super().minimumSizeHint().width(), rows + bar + around)

    @property
    def selected(self) -> str:
        rows = self.selectionModel().selectedRows()
        return self._machine(rows[0]) if rows else ""

    def select(self, machine: str) -> None:
        """Choose a row; "" for none."""
        if machine == self.selected:
            return
        for row, one in enumerate(self._model.facts):
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
        return str(self._model.facts[source.row()].id) if source.isValid() else ""

    def _selection_changed(self) -> None:
        self.chosen.emit(self.selected)


def _machine_tip(one: MachineFacts) -> str:
    return tooltip(one.name, one.device, machine_words.own_use(one), machine_words.why(one))


def _machine_columns() -> tuple[Column, ...]:
    return (
        Column(_tr("Machine"), _machine_name, lambda one: one.name, figure=False),
        Column(_tr("State"), lambda one: machine_words.state(one).word, lambda one: one.state, figure=False),
        Column(_tr("Held of lent"), machine_words.lent, lambda one: one.used_bytes - one.own_bytes),
        Column(_tr("In all"), _total_memory, lambda one: one.total_bytes),
        Column(_tr("Layers"), _layers, lambda one: one.layers[0][0] if one.layers else -1),
        Column(_tr("Work"), machine_words.computes, lambda one: -1.0 if one.share is None else one.share),
        Column(_tr("Link"), _link_rate, _link_value("slower_bytes_per_s")),
        Column(_tr("Round trip"), _round_trip, _link_value("round_trip_s")),
        Column(_tr("Age"), _age, _link_value("measured_at")),
        Column(_tr("By"), _carrier, _carrier, figure=False),
        Column(_tr("Share"), _share, _link_value("share")),
    )


def _machine_name(one: MachineFacts) -> str:
    """With what it is for us, as the map says it."""
    parts = ((one.this, _tr("this machine")), (one.host, _tr("host")))
    told = ", ".join(word for is_so, word in parts if is_so)
    return f"{one.name} ({told})" if told else one.name


def _total_memory(one: MachineFacts) -> str:
    return formats.size(one.total_bytes) if one.total_bytes else _tr("not known")


def _layers(one: MachineFacts) -> str:
    if one.layers and one.replica is None and not one.of_models:
        return machine_words.layers(one.layers).partition(" ")[2]
    return machine_words.holds(one) or _tr("none")


def _link_rate(one: MachineFacts) -> str:
    return _of_link(one, lambda link: _measured(link.slower_bytes_per_s, formats.rate))


def _link_value(name: str) -> Callable[[MachineFacts], float]:
    def value(one: MachineFacts) -> float:
        found = getattr(one.link, name) if one.link else None
        return -1.0 if found is None else float(found)

    return value


def _round_trip(one: MachineFacts) -> str:
    return _of_link(one, lambda link: _measured(link.round_trip_s, machine_words.milliseconds))


def _age(one: MachineFacts) -> str:
    return _of_link(one, lambda link: machine_words.short_age(link.measured_at) if link.measured_at else "")


def _carrier(one: MachineFacts) -> str:
    return _of_link(one, lambda link: machine_words.kind(link.worst_kind).word if link.kind else "")


def _share(one: MachineFacts) -> str:
    """The number alone: what it means is said where there is room, on the map and in the details."""
    return _of_link(one, lambda link: "" if link.share is None else formats.percent(link.share))


def _of_link(one: MachineFacts, told: Callable[[LinkFacts], str]) -> str:
    return told(one.link) if one.link else ""


def _measured(value: float | None, words_of: Callable[[float], str]) -> str:
    return _tr("not measured") if value is None else words_of(value)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Household", text)
