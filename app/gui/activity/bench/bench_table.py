"""Earlier benchmarks as a table: when, on what, how fast, and how far from the forecast."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QTableView

from app.gui.activity.bench.bench_report import against
from app.gui.activity.bench.bench_store import Bench
from app.gui.activity.moments import clock, exact
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.sentences import model_name
from app.gui.look.theme import Theme
from app.gui.widgets.labels import tooltip
from app.gui.widgets.layouts import Columns

Index = QModelIndex | QPersistentModelIndex
WHEN, MODEL, MACHINES, EXTENT, FIRST, SPEED, SAID = range(7)
SHOWN_ROWS = 6


class BenchModel(QAbstractTableModel):
    """The newest first."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Bench] = []

    def show(self, rows: Sequence[Bench]) -> None:
        self.beginResetModel()
        self._rows = list(rows)
        self.endResetModel()

    def bench(self, row: int) -> Bench | None:
        return self._rows[row] if 0 <= row < len(self._rows) else None

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008  Qt's name and manner
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        return 0 if parent.isValid() else 7

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(section)
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return (
            self.tr("When"),
            self.tr("Model"),
            self.tr("Machines"),
            self.tr("Kind"),
            self.tr("First token"),
            self.tr("Speed"),
            self.tr("Beside its forecast"),
        )[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        one = self._rows[index.row()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self._words(one, index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            is_when = index.column() == WHEN
            return exact(one.at) if is_when else tooltip(self._words(one, index.column()))
        return None

    def _words(self, one: Bench, column: int) -> str:
        first, speed = one.mean("ttft_s"), one.mean("decode_tok_s")
        unknown = self.tr("not measured")
        return (
            clock(one.at),
            model_name(one.model),
            formats.number(len(one.machines)),
            self.tr("full") if one.extent == "full" else self.tr("quick"),
            formats.seconds(first) if first else unknown,
            formats.speed(speed) if speed else unknown,
            against(one, "decode_tok_s"),
        )[column]


class BenchTable(QTableView):
    """Rows of benchmarks; its height follows how many there are."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.rows = BenchModel()
        self.rows.setParent(self)
        self.setModel(self.rows)
        self.setAccessibleName(self.tr("Earlier benchmarks"))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setResizeContentsPrecision(2 * SHOWN_ROWS)  # rows that decide how wide a column is
        self._columns = Columns(self, MODEL, self._fit)
        theme.changed.connect(self._fit)

    def show_all(self, rows: Sequence[Bench]) -> None:
        self.rows.show(rows)
        self._fit()

    def _fit(self) -> None:
        row = self._theme.px(sizes.CONTROL_HEIGHT)
        self.verticalHeader().setDefaultSectionSize(row)
        shown = min(SHOWN_ROWS, max(1, self.rows.rowCount()))
        self.setFixedHeight(row * (shown + 1) + sizes.S + self._columns.bar_height)


def _side(column: int) -> Qt.AlignmentFlag:
    left = column in (WHEN, MODEL, EXTENT)
    side = Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter
