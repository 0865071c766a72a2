"""Windows no larger than their screen: what lies beyond its edge cannot be pressed."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtWidgets import QWidget

FRAME = QSize(4, 40)  # two edges and a title bar, which nobody knows before a window is shown


def available(widget: QWidget) -> QRect:
    """Its screen, without the bars that the system keeps there."""
    return widget.screen().availableGeometry()


def room(widget: QWidget) -> QSize:
    """So large may a window be there, inside its frame."""
    return available(widget).size() - FRAME


def fit(window: QWidget, smallest: QSize) -> None:
    """Not larger than its screen, nor is the least that a person may make of it."""
    most = room(window)
    window.setMinimumSize(smallest.boundedTo(most))
    if window.isMaximized() or window.isFullScreen():
        return
    if window.size() != window.size().boundedTo(most):
        window.resize(window.size().boundedTo(most))
        window.move(available(window).topLeft())


def hold(window: QWidget) -> None:
    """Whole on its screen, wherever it was: what grew downwards goes up."""
    window.resize(window.size().boundedTo(room(window)))
    screen, frame = available(window), window.frameGeometry()
    left = max(screen.left(), min(frame.left(), screen.right() - frame.width() + 1))
    top = max(screen.top(), min(frame.top(), screen.bottom() - frame.height() + 1))
    if frame.topLeft() != QPoint(left, top):
        window.move(left, top)
