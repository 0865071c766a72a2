"""The window's parts over a real node, followed and shown with pytest-qt."""

from __future__ import annotations

from PySide6.QtCore import QSize
from pytestqt.qtbot import QtBot

from app.gui.app.app_context import AppContext
from app.gui.app.window import USUAL, Window
from testbed.desk import Attached, Desk, desk

__all__ = ["Attached", "Desk", "desk", "follow", "window_over"]


def follow(qtbot: QtBot, services: AppContext, within_ms: int = 10_000) -> None:
    """Wait until the node's snapshot is there."""
    services.pool.start()
    qtbot.waitUntil(lambda: services.pool.is_there, timeout=within_ms)


def window_over(qtbot: QtBot, services: AppContext, page: str = "", size: QSize = USUAL) -> Window:
    """The real window, shown, at a page."""
    made = Window(services, lambda: False, lambda: None)
    qtbot.addWidget(made)
    made.resize(size)
    made.show()
    if page:
        made.go(page)
    return made
