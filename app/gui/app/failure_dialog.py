"""The dialog that explains why the window could not be opened."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from app.core.errors import AppError
from app.gui.look.sentences import said
from app.gui.look.theme import Scheme, Theme
from app.gui.widgets.dialog import CompactDialog


class FailureDialog(CompactDialog):
    """A dialog for users who started Poolhouse from a menu, without a terminal that would show the error.

    It uses no settings, because they may be unreadable.
    """

    def __init__(self, app: QApplication, error: AppError) -> None:
        super().__init__(Theme(app, Scheme.SYSTEM, 1.0), self.tr("Poolhouse can't start"), said(error), None)
        self.offer(self.tr("Close")).setFocus()
