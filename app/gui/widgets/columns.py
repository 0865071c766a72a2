"""Columns as wide as their words, of which one takes what is left; a table too wide for its place scrolls."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QHeaderView, QTableView


class Columns(QObject):
    """Belongs to its table, which has its model. `bar_changed` when the bar at the bottom comes or goes."""

    def __init__(self, table: QTableView, rest: int, bar_changed: Callable[[], object]) -> None:
        super().__init__(table)
        self._table, self._rest, self._bar_changed = table, rest, bar_changed
        self._fits, self._placing = True, False
        table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        table.setHorizontalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
        header = table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(rest, QHeaderView.ResizeMode.Fixed)
        header.sectionResized.connect(self._resized)
        table.model().modelReset.connect(self._place)
        table.viewport().installEventFilter(self)

    @property
    def bar_height(self) -> int:
        """Of the bar to scroll sideways with, where there is one."""
        return 0 if self._fits else self._table.horizontalScrollBar().sizeHint().height()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def _resized(self, column: int) -> None:
        if column != self._rest:
            self._place()

    def _place(self) -> None:
        if self._placing:
            return
        self._placing = True
        header, table = self._table.horizontalHeader(), self._table
        others = header.length() - header.sectionSize(self._rest)
        least = max(table.sizeHintForColumn(self._rest), header.sectionSizeHint(self._rest))
        left = table.viewport().width() - others
        header.resizeSection(self._rest, max(least, left))
        self._placing = False
        if self._fits != (left >= least):
            self._fits = left >= least
            self._bar_changed()
