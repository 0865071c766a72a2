"""The hover effect of rows in a painted list."""

from __future__ import annotations

from PySide6.QtCore import QEasingCurve, QEvent, QModelIndex, QObject, QPersistentModelIndex, QVariantAnimation
from PySide6.QtGui import QHoverEvent
from PySide6.QtWidgets import QAbstractItemView

from app.gui.look.motion import may_move
from app.gui.look.theme import HOVER_MS

Index = QModelIndex | QPersistentModelIndex
MOVES = (QEvent.Type.HoverEnter, QEvent.Type.HoverMove)


class RowHover(QObject):
    """Fades the hover effect in and out in HOVER_MS. The painter asks for the `share` of each row."""

    def __init__(self, view: QAbstractItemView) -> None:
        super().__init__(view)
        self._view = view
        self._over, self._left = QPersistentModelIndex(), QPersistentModelIndex()
        self._left_at = 0.0  # how much of its look the row had when the pointer left it
        self._fade = QVariantAnimation(self)
        self._fade.setDuration(HOVER_MS)
        self._fade.setStartValue(0.0)
        self._fade.setEndValue(1.0)
        self._fade.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._fade.valueChanged.connect(lambda _: self._paint())
        view.entered.connect(self._point)  # rows move under a pointer at rest, too
        view.viewport().installEventFilter(self)

    def share(self, index: Index) -> float:
        """Return the strength of the hover effect, from 0 to 1."""
        done = float(self._fade.currentValue() or 0)
        if self._over == index:
            return done
        return (1 - done) * self._left_at if self._left == index else 0.0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() in MOVES and isinstance(event, QHoverEvent):
            self._point(self._view.indexAt(event.position().toPoint()))
        elif event.type() == QEvent.Type.HoverLeave:
            self._point(QModelIndex())
        return False

    def _point(self, index: QModelIndex) -> None:
        if self._over == index:
            return
        self._left_at = self.share(self._over)
        self._left, self._over = self._over, QPersistentModelIndex(index)
        self._fade.stop()
        self._fade.start()
        if not may_move():
            self._fade.setCurrentTime(HOVER_MS)
        self._paint()

    def _paint(self) -> None:
        model = self._view.model()
        for row in (self._left, self._over):
            if row.isValid():
                self._view.update(model.index(row.row(), row.column(), row.parent()))
