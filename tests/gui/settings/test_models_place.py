"""Another folder for models in the window: what it would mean, the move, and back; over a real node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app.api import computer, downloads
from app.decoding import convert
from app.gui.models.folder_dialog import FolderSheet, choose_folder
from app.gui.models.transfers import TransferRow, of_download
from app.gui.settings.models import Models, ModelsFolder
from app.gui.settings.settings_page import SettingsPage
from app.gui.welcome.first_page import HardwareRow
from app.machine.models_folders import MARKER, ModelsFolders
from tests.findings import tells
from tests.gui.desk import Desk
from tests.gui.models.offers import download

SHA256 = "ab" * 32


@pytest.fixture
def page(qtbot: QtBot, at_lone: Desk) -> SettingsPage:
    made = SettingsPage(at_lone.services)
    qtbot.addWidget(made)
    made.resize(1000, 760)
    made.show()
    made.open("Models")
    return made


@pytest.fixture
def place(page: SettingsPage) -> ModelsFolder:
    models_place = page.findChild(ModelsFolder)
    assert models_place is not None
    return models_place


def until(qtbot: QtBot, met: Callable[[], Any]) -> None:
    qtbot.waitUntil(lambda: bool(met()), timeout=10_000)


def told(desk: Desk) -> Any:
    return desk.services.pool.snapshot["models_folder"]


def test_equal_results_are_the_default_of_new_loads_after_one_click(
    qtbot: QtBot, at_lone: Desk, page: SettingsPage
) -> None:
    models = page.findChild(Models)
    assert models is not None
    models.exact.click()
    until(qtbot, lambda: at_lone.services.pool.now.exact)
    models.reset()
    until(qtbot, lambda: not at_lone.services.pool.now.exact)
    until(qtbot, lambda: not models.exact.isChecked())  # its own answer comes after the news


@pytest.mark.long
def test_models_go_to_another_folder_and_back(
    qtbot: QtBot, at_lone: Desk, page: SettingsPage, place: ModelsFolder, tmp_path: Path
) -> None:
    files = at_lone.services.launcher.home / "models" / "files"
    files.mkdir(exist_ok=True)
    (files / f"{SHA256}.gguf").write_bytes(b"x" * 3000)
    (tmp_path / "photo.jpg").write_bytes(b"x")
    assert place.choose.isVisible()
    assert not any(item.isVisible() for item in (place.own, place.stop, place.bar))
    sheet = FolderSheet(at_lone.services, str(tmp_path), page)
    sheet.open()
    until(qtbot, sheet.act.isEnabled)
    there = tmp_path / "Poolhouse models"
    assert sheet.sentence.text().startswith(f"New models will be stored in {there} (")
    assert sheet.move_models.text() == "Also move 1 model(s) there (3 KiB)"
    sheet.move_models.setChecked(False)
    sheet.act.click()
    until(qtbot, lambda: told(at_lone)["folder"] == str(there) and place.move_them.isVisible())
    assert place.words.text() == f"1 model(s) in {files}, 3 KiB"
    assert place.own.isVisible()
    place.move_them.click()
    until(qtbot, lambda: (there / f"{SHA256}.gguf").exists() and place.choose.isVisible())
    until(qtbot, lambda: not place.words.isVisible())
    back = FolderSheet(at_lone.services, "", page)
    back.open()
    until(qtbot, back.act.isEnabled)
    assert back.move_models.isChecked()
    back.act.click()
    until(qtbot, lambda: told(at_lone)["default"] and not told(at_lone).get("move"))
    until(qtbot, lambda: not there.exists())
    (files / f"{SHA256}.gguf").unlink()


def test_a_small_disk_is_said_to_take_no_downloads(
    qtbot: QtBot, at_lone: Desk, page: SettingsPage, tmp_path: Path
) -> None:
    sheet = FolderSheet(at_lone.services, str(tmp_path), page)
    seen = {"folder": "/x", "same": False, "free_bytes": 1 << 30, "models": 0, "bytes": 0, "fits": True}
    sheet._show_choice(convert(seen | {"room_bytes": 1}, downloads.FolderChoice))
    assert "downloaded" not in sheet.sentence.text()
    sheet._show_choice(convert(seen | {"room_bytes": 0}, downloads.FolderChoice))
    assert "Poolhouse always leaves 5 GiB free, so there is no space for downloads there now." in sheet.sentence.text()
    sheet.reject()


def test_a_tick_that_was_taken_away_stays_away(qtbot: QtBot, at_lone: Desk, page: SettingsPage, tmp_path: Path) -> None:
    """The node was lost and came back: the folder is looked at again, and what the person chose is kept."""
    sheet = FolderSheet(at_lone.services, str(tmp_path), page)
    seen = {"folder": "/x", "same": False, "free_bytes": 1, "room_bytes": 1, "models": 1, "bytes": 1}
    ticked = []
    for fits, chosen in ((True, True), (True, False), (True, True), (False, True), (True, False)):
        sheet._show_choice(convert(seen | {"fits": fits}, downloads.FolderChoice))
        ticked.append(sheet.move_models.isChecked())
        sheet.move_models.setChecked(chosen)
    assert ticked == [True, True, False, False, True]
    sheet.reject()


def test_a_folder_of_another_poolhouse_is_refused_in_the_sheet(
    qtbot: QtBot, at_lone: Desk, page: SettingsPage, tmp_path: Path
) -> None:
    ModelsFolders(tmp_path).claim(tmp_path / "other", "b" * 32)
    sheet = FolderSheet(at_lone.services, str(tmp_path / "other"), page)
    sheet.open()
    until(qtbot, lambda: sheet.notice.sentence)
    assert sheet.notice.sentence.startswith("Another copy of Poolhouse keeps its models in ")
    assert not sheet.act.isEnabled()
    sheet.reject()
    assert [path.name for path in (tmp_path / "other").iterdir()] == [MARKER]


def test_a_disk_that_is_away_and_a_move_are_said(qtbot: QtBot, away: Desk) -> None:
    shown = ModelsFolder(away.services)
    qtbot.addWidget(shown)
    shown.show()
    move = {
        "name": "tiny", "done_bytes": 1 << 30, "total_bytes": 4 << 30, "bytes_per_s": 1 << 20,
        "seconds_left": 3072, "waits": None,
    }  # fmt: skip
    folder = {"folder": "/x", "default": False, "there": False, **tells("/x is away."), "elsewhere": [], "move": move}
    pool = away.services.pool
    pool.snapshot = {"models_folder": folder}
    shown.show_state()
    assert shown.problem.text() == "/x is away."
    assert shown.words.text() == "Moving tiny. Total: 1.0 GiB of 4.0 GiB · 1.0 MiB/s · 51 min 12 s left"
    assert shown.bar.value() == 250
    assert shown.stop.isVisible()
    assert not shown.choose.isVisible()
    waits = {"waits_facts": {"code": "models_move_waits", "facts": {"name": "tiny"}}}
    pool.snapshot = {"models_folder": folder | {"move": move | waits}}
    shown.show_state()
    assert shown.words.text().startswith("tiny is loaded.")


def test_a_download_without_room_offers_another_folder(qtbot: QtBot, away: Desk) -> None:
    did = list[tuple[str, str]]()
    full = download("failed", code="download_no_room", reason="Not enough space.")
    row = TransferRow(
        away.services.theme, lambda *args: did.append(args), of_download(convert(full, downloads.Download))
    )
    qtbot.addWidget(row)
    row.show()
    row.folder.click()
    assert did == [(full["id"], "folder")]
    row.show_transfer(of_download(convert(download("failed", code="hub_slow", reason="Too slow."), downloads.Download)))
    assert not row.folder.isVisible()


def test_the_system_s_dialog_asks_for_a_folder(qtbot: QtBot, at_lone: Desk, page: SettingsPage, tmp_path: Path) -> None:
    choose_folder(at_lone.services, page)
    dialog = page.findChild(QFileDialog)
    assert dialog is not None
    assert dialog.fileMode() is QFileDialog.FileMode.Directory
    dialog.fileSelected.emit(str(tmp_path))
    sheet = page.findChild(FolderSheet)
    assert sheet is not None
    until(qtbot, sheet.act.isEnabled)
    sheet.reject()
    dialog.reject()


def test_the_first_steps_offer_another_disk_where_there_is_little_room(
    qtbot: QtBot, at_lone: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.gui.welcome.first_page.LOW_SPACE_BYTES", 0)
    step = HardwareRow(at_lone.services)
    qtbot.addWidget(step)
    step.show()
    assert not step.few.isVisible()
    assert not step.choose.isVisible()
    monkeypatch.setattr("app.gui.welcome.first_page.LOW_SPACE_BYTES", 1 << 62)
    step.refresh()
    assert step.few.isVisible()
    assert step.choose.isVisible()


def test_how_large_models_are_is_not_known_while_their_disk_is_away(
    qtbot: QtBot, at_lone: Desk, page: SettingsPage
) -> None:
    group = page.group
    assert isinstance(group, Models)
    until(qtbot, group.models.text)
    there = told(at_lone)
    pool = at_lone.services.pool
    pool.snapshot = {**pool.snapshot, "models_folder": {**there, "there": False}}
    folder = {"what": "models", "path": "/x", "bytes": 0, "free_bytes": 0}
    group._tell_folders(convert({"folders": [folder]}, computer.Settings))
    assert group.models.text() == "not available"
    pool.snapshot = {**pool.snapshot, "models_folder": there}
    group._tell_folders(convert({"folders": [folder]}, computer.Settings))
    assert group.models.text() == "Empty"
