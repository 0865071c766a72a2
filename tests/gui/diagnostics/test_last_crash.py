"""A window that crashed says so at its next start, with details to copy; an orderly end says nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.gui.app.application import KEPT, CrashRecorder, take_crash_trace
from app.gui.app.window import Window
from tests.gui.desk import Desk

CODE = """
import os, sys
from pathlib import Path
from app.gui.app.application import CrashRecorder
with CrashRecorder(Path(sys.argv[1])):
    if sys.argv[2] == "crash":
        os.abort()
"""


def window_of(logs: Path, how: str) -> None:
    subprocess.run([sys.executable, "-c", CODE, str(logs), how], check=False, capture_output=True, timeout=30)


def test_only_a_crash_leaves_a_trace(tmp_path: Path) -> None:
    assert take_crash_trace(tmp_path) == ""
    window_of(tmp_path, "end")
    assert take_crash_trace(tmp_path) == ""
    window_of(tmp_path, "crash")
    assert "Aborted" in take_crash_trace(tmp_path)
    assert (tmp_path / KEPT).exists()
    assert take_crash_trace(tmp_path) == ""  # told once


def test_it_is_said_with_details_to_copy(qtbot: QtBot, away: Desk, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "window.log").write_text("Fatal Python error: Aborted\n")
    watch = CrashRecorder(tmp_path / "logs")
    window = Window(away.services, lambda: False, lambda: None)
    qtbot.addWidget(window)
    watch.report(window)
    copy = next(button for button in window.findChildren(QPushButton) if button.text() == "Copy details")
    copy.click()
    assert QGuiApplication.clipboard().text() == "Fatal Python error: Aborted"
