"""The folder of the last file comes back in the next dialog, for its purpose, and when the window comes again."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from app.gui.app.preferences import Preferences
from app.gui.chat.composer import Composer
from app.gui.chat.reading.picture_loader import PictureLoader
from app.gui.widgets.files import LastFolder
from tests.gui.desk import Desk


def test_it_is_kept_for_each_purpose_as_long_as_it_is_there(tmp_path: Path, qtbot: QtBot) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    preferences = Preferences(tmp_path)
    last, proposed = LastFolder(preferences, "attach"), tmp_path / "report.html"
    home = str(Path.home())  # not the folder that the app was started in
    assert (last.folder(), last.offered(proposed)) == (home, proposed)
    assert last.offered(Path("chat.md")).is_absolute()  # nor is a file saved there
    last.keep(notes / "plan.txt")
    preferences._kept.sync()
    again = LastFolder(Preferences(tmp_path), "attach")
    assert (again.folder(), again.offered(proposed)) == (str(notes), notes / "report.html")
    assert LastFolder(preferences, "export").folder() == home
    notes.rmdir()
    assert (again.folder(), again.offered(proposed)) == (home, proposed)


def test_the_next_file_is_attached_from_the_same_folder(
    qtbot: QtBot, away: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, opened = tmp_path / "note.txt", list[str]()
    note.write_text("forty bytes, or so")

    def choose(_: QWidget, __: str, folder: str) -> tuple[list[str], str]:
        opened.append(folder)
        return ([str(note)], "") if len(opened) == 1 else ([], "")

    monkeypatch.setattr(QFileDialog, "getOpenFileNames", choose)
    composer = Composer(away.services.theme, lambda _: None, away.services.preferences, PictureLoader(), lambda _: None)
    qtbot.addWidget(composer)
    for _ in range(3):
        composer.attach_button.click()
    assert opened == [str(Path.home()), str(tmp_path), str(tmp_path)]
