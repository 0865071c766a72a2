"""Functions that open the dialogs for diagnostics and pairing. Each one imports its dialog only when called."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.gui.app.app_context import AppContext


def open_doctor(services: AppContext, parent: QWidget | None = None, joins: bool = False) -> None:
    """Open the doctor dialog and run its checks.

    joins: whether the user is trying to join a household.
    """
    from app.gui.diagnostics.doctor_dialog import DoctorDialog

    dialog = DoctorDialog(services, parent, joins)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()


def open_save_dialog(services: AppContext, parent: QWidget | None = None) -> None:
    """Open the dialog that saves a support bundle."""
    from app.gui.diagnostics.save_dialog import SaveDialog

    dialog = SaveDialog(services, parent)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()


def open_add_dialog(services: AppContext, parent: QWidget) -> None:
    """Open the dialog that shows a pairing code for another computer."""
    from app.gui.pool.household_dialogs import AddMachineDialog

    AddMachineDialog(services, parent).open()
