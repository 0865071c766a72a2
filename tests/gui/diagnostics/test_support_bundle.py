"""The file for whoever helps: complete, readable first, nothing private in it, also while the node is down."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.core.errors import AppError
from app.core.reasons import said
from app.gui.diagnostics import save_dialog
from app.gui.diagnostics.background_job import Job
from app.gui.diagnostics.save_dialog import LOG_BYTES, NodeReport, SaveDialog, gather, write
from tests.gui.desk import Desk

OPERATION = json.dumps({"kind": "add", "name": "studio-mac", "machine": "ab" * 32})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose node is down."""
    for name in ("logs", "household", "window"):
        (tmp_path / name).mkdir()
    (tmp_path / "settings.json").write_text(
        '{"name": "den-pc", "port": 4242, "models": {"path": "/media/Ann Smith/models"}}'
    )
    (tmp_path / "household" / "household.json").write_text(json.dumps({"operations": [OPERATION, "{"]}))
    (tmp_path / "runtime.json").write_text('{"token": "very-secret-token"}')
    message = f"den-pc linked to studio-mac at 10.0.0.7:4242\nopened {tmp_path}/models/x.gguf"
    result = {"time": "2026-01-02T03:04:05.678Z", "level": "INFO", "logger": "app.node", "message": message}
    lines = json.dumps(result) + "\n"
    (tmp_path / "logs" / "node.log").write_text("x" * LOG_BYTES + "\n" + lines)
    (tmp_path / "window" / "window.ini").write_text("[look]\nscheme=dark\n[chat]\nsystem=my private words\n")
    return tmp_path


def test_nothing_private_is_in_it(home: Path) -> None:
    files = gather(NodeReport(home, "Ready."))
    assert list(files) == ["about.txt", "settings.json", "window.ini", "logs/node.log"]
    everything = "\n".join(files.values())
    for private in ("den-pc", "studio-mac", "10.0.0.7", "very-secret", "private words", "Ann Smith", str(home)):
        assert private not in everything
    assert "machine-1 linked to machine-2 at address-1:4242" in files["logs/node.log"]
    assert "look/scheme=dark" in files["window.ini"]
    assert len(files["logs/node.log"]) <= LOG_BYTES


def test_a_home_that_is_not_there_gives_what_there_is(tmp_path: Path) -> None:
    assert list(gather(NodeReport(tmp_path / "nothing"))) == ["about.txt"]


def test_a_zip_that_cannot_be_written_leaves_nothing(home: Path) -> None:
    with pytest.raises(OSError, match="directory"):
        write(home / "nowhere" / "x.zip", {"a": "b"})
    (home / "old.zip").write_text("old")
    with pytest.raises(UnicodeError):
        write(home / "old.zip", {"a": "b", "c": "\ud800"})
    assert (home / "old.zip").read_text() == "old"
    assert list(home.glob("*.part")) == []


def test_any_error_of_a_job_is_told(qtbot: QtBot, caplog: pytest.LogCaptureFixture) -> None:
    owner, reports = QObject(), list[OSError | AppError]()
    Job(lambda: 1 / 0, lambda _: None, reports.append, owner)
    qtbot.waitUntil(lambda: bool(reports), timeout=5000)
    assert "ZeroDivisionError" in str(reports[0])
    assert "ZeroDivisionError" in caplog.text


def test_the_files_are_shown_before_they_are_saved(qtbot: QtBot, at_lone: Desk, tmp_path: Path) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = SaveDialog(at_lone.services, parent)
    qtbot.waitUntil(lambda: bool(dialog.files), timeout=10_000)
    names = [dialog.list.item(row).text() for row in range(dialog.list.count())]
    assert {"about.txt", "state.json", "settings.json", "logs/node.log"} <= set(names)
    dialog.list.setCurrentRow(names.index("state.json"))
    assert '"machine-1"' in dialog.text.toPlainText()
    assert '"den"' not in dialog.text.toPlainText()
    dialog.save_to(tmp_path / "saved.zip")
    qtbot.waitUntil(lambda: bool(dialog.notice.sentence), timeout=5000)
    with zipfile.ZipFile(tmp_path / "saved.zip") as packed:
        assert packed.namelist() == names
        assert packed.read("about.txt").decode().startswith("Poolhouse: ")
    dialog.save_to(tmp_path / "nowhere" / "saved.zip")
    qtbot.waitUntil(lambda: "Choose another folder" in dialog.notice.sentence, timeout=5000)


def test_a_mistake_of_ours_sends_nobody_to_another_folder(
    qtbot: QtBot, at_lone: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = SaveDialog(at_lone.services, parent)
    monkeypatch.setattr(save_dialog, "write", lambda *_: 1 / 0)
    dialog.save_to(tmp_path / "saved.zip")
    qtbot.waitUntil(lambda: bool(dialog.notice.sentence), timeout=5000)
    assert dialog.notice.sentence == said(AppError("bug"))
    assert any("ZeroDivisionError@" in label.text() for label in dialog.notice.findChildren(QLabel))
