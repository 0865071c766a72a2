"""The wheel of a mouse, turned over a widget."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

NOTCH = 120  # Qt's eighths of a degree


def turn(widget: QWidget) -> None:
    """One notch down, with the pointer on `widget`: as Qt does, what ignores it leaves it to its parent."""
    below: QWidget | None = widget
    while below is not None and not _takes(below):
        below = below.parentWidget()


def _takes(widget: QWidget) -> bool:
    at = QPointF(widget.rect().center())
    away, none = QPoint(0, -NOTCH), Qt.KeyboardModifier.NoModifier
    event = QWheelEvent(
        at, QPointF(widget.mapToGlobal(at.toPoint())), QPoint(), away, Qt.MouseButton.NoButton, none,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)
    return event.isAccepted()
