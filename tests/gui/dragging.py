"""Drags files over a widget and lets them go, as a person does."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QWidget

COPY, LEFT = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
PLAIN = Qt.KeyboardModifier.NoModifier


def dragged(*paths: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def enter(over: QWidget, data: QMimeData) -> bool:
    """Return whether the drop would be accepted."""
    event = QDragEnterEvent(QPoint(5, 5), COPY, data, LEFT, PLAIN)
    QApplication.sendEvent(over, event)
    return event.isAccepted()


def drop(over: QWidget, data: QMimeData) -> None:
    enter(over, data)
    QApplication.sendEvent(over, QDropEvent(QPointF(5, 5), COPY, data, LEFT, PLAIN))
