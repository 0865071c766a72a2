"""The dialogs for changing the models folder. The system's folder dialog comes first, then a preview of the effects."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QCheckBox, QFileDialog, QWidget

from app.api.downloads import FolderChoice
from app.core.errors import AppError
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.look import formats
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import paragraph

FOLDER_ERRORS = frozenset(  # errors that choosing another folder can resolve
    {"download_no_room", "disk_full", "models_folder_away", "models_folder_other"}
)


def choose_folder(services: AppContext, parent: QWidget) -> None:
    """Ask the user for a folder on this computer, then show what choosing it would do."""
    dialog = QFileDialog(parent, choose_folder_text(), str(Path.home()))
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda path: FolderSheet(services, path, parent).open())
    dialog.open()


def choose_folder_text() -> str:
    """Return the label of the button that calls `choose_folder`."""
    return _tr("Choose another folder…")


class FolderSheet(Sheet):
    """A dialog that shows the consequences of choosing a folder. If `path` is empty, it is Poolhouse's own folder."""

    def __init__(self, services: AppContext, path: str, parent: QWidget) -> None:
        title = _tr("Store models in another folder")
        if not path:
            title = _tr("Store models in Poolhouse's own folder")
        super().__init__(services, title, _tr("Checking that folder…"), parent)
        self._path, self._is_first = path, True
        self.move_models = QCheckBox()
        self.move_models.hide()
        self.about = paragraph("", "caption")
        self.about.hide()
        self.add(self.move_models, self.about)
        self.act = button(_tr("Store models there"), self.choose, "primary")
        self.act.setEnabled(False)
        self.offer(_tr("Cancel"), self.act)
        self._preview()

    def came_back(self) -> None:
        self._preview()

    def _preview(self) -> None:
        body = {"path": self._path}
        self.keep(
            self.services.client.post("/folder/look", body, self._show_choice, self._refused, answer=FolderChoice)
        )

    def choose(self) -> None:
        self.act.setEnabled(False)
        self.notice.clear()
        body = {"path": self._path, "move": self.move_models.isChecked()}
        call = self.services.client.post("/folder", body, lambda _: self.accept(), self._failed)
        self.keep(call)

    def _show_choice(self, choice: FolderChoice) -> None:
        free = formats.size(choice.free_bytes)
        words = _tr("New models will be stored in {folder} ({free} free).")
        if choice.same:
            words = _tr("Models are already stored in {folder} ({free} free).")
        words = words.format(folder=choice.folder, free=free)
        if choice.room_bytes == 0:
            words += " " + _tr("Poolhouse always leaves 5 GiB free, so there is no space for downloads there now.")
        self.sentence.setText(words)
        self.move_models.setVisible(choice.models > 0)
        self.move_models.setText(
            QCoreApplication.translate("Models", "Also move %n model(s) there ({size})", "", choice.models).replace(
                "{size}", formats.size(choice.bytes)
            )
        )
        is_checked = self._is_first or self.move_models.isChecked()  # checked at first; later the user's choice is kept
        self._is_first = False
        self.move_models.setChecked(is_checked and choice.models > 0 and choice.fits)
        self.move_models.setEnabled(choice.fits)
        self.about.setVisible(choice.models > 0)
        self.about.setText(
            _tr(
                "Models are used from their old location until the copies are verified. If you uncheck this box, "
                "your models stay where they are and can still be used."
            )
            if choice.fits
            else _tr(
                "There is not enough space there for your existing models. They stay where they are and can still be "
                "used."
            )
        )
        self.act.setEnabled(not choice.same or choice.models > 0)
        self.fit()

    def _refused(self, error: AppError) -> None:
        """Show why this folder cannot be used."""
        self.sentence.setText(self._path)
        self.fail(error)

    def _failed(self, error: AppError) -> None:
        self.act.setEnabled(True)
        self.fail(error)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Models", text)
