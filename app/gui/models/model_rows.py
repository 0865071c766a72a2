"""The list as a Qt model: headings and models under them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.gui.models.model_item import Item, small_print
from app.gui.models.verdicts import Judgement, short

Index = QModelIndex | QPersistentModelIndex
ITEM_ROLE = Qt.ItemDataRole.UserRole + 1  # Row
NOTHING = QModelIndex()


@dataclass(frozen=True, slots=True)
class Row:
    """A heading (without an item), or a model with all that its line shows."""

    heading: str = ""
    item: Item | None = None
    judgement: Judgement | None = None
    mark: str = ""  # a word that stands out: that it is loaded

    @property
    def sentence(self) -> str:
        """For a screen reader."""
        if self.item is None:
            return self.heading
        verdict = short(self.judgement) if self.judgement else ""
        parts = (self.item.title, small_print(self.item), verdict, self.mark)
        return ", ".join(part for part in parts if part)


class Rows(QAbstractListModel):
    """`show` finds what is another: a repaint where the lines are the same."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []

    def rowCount(self, parent: Index = NOTHING) -> int:  # noqa: N802  Qt's name
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self._rows[index.row()]
        if role == ITEM_ROLE:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return row.item.title if row.item else row.heading
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return row.sentence
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if self._rows[index.row()].item is None:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable

    def show(self, rows: list[Row]) -> None:
        """Show these."""
        if _lines(rows) == _lines(self._rows):
            changed = [n for n, row in enumerate(rows) if row != self._rows[n]]
            self._rows = rows
            if changed:
                self.dataChanged.emit(self.index(changed[0]), self.index(changed[-1]))
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def row(self, index: Index) -> Row:
        return self._rows[index.row()]

    def place(self, key: str) -> QModelIndex:
        """Where a model stands; an invalid index if it does not."""
        for n, row in enumerate(self._rows):
            if row.item is not None and row.item.key == key:
                return self.index(n)
        return QModelIndex()


def _lines(rows: list[Row]) -> list[str]:
    return [row.item.key if row.item else row.heading for row in rows]
