"""A second start shows the first window, a killed one is in nobody's way, and another home is another app."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QDir
from pytestqt.qtbot import QtBot

from app.gui.single_instance import SingleInstance, name_of, show_other


def test_a_second_start_shows_the_first_window(qtbot: QtBot, tmp_path: Path) -> None:
    assert not show_other(tmp_path)  # none is open
    shown: list[bool] = []
    first = SingleInstance(tmp_path)
    first.show.connect(lambda: shown.append(True))
    assert show_other(tmp_path)
    assert show_other(tmp_path)
    qtbot.waitUntil(lambda: len(shown) == 2, timeout=5000)


def test_another_home_is_another_app(qtbot: QtBot, tmp_path: Path) -> None:
    first = SingleInstance(tmp_path / "den")
    assert not show_other(tmp_path / "attic")
    assert name_of(tmp_path / "den") != name_of(tmp_path / "attic")
    assert str(tmp_path) not in name_of(
        tmp_path / "den"
    )  # nobody else reads it from the socket's name
    first.deleteLater()


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe of Windows ends with its process")
def test_a_window_that_was_killed_is_in_nobody_s_way(qtbot: QtBot, tmp_path: Path) -> None:
    left = Path(QDir.tempPath()) / name_of(tmp_path)
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(left))
    assert left.exists()
    assert not show_other(tmp_path)
    shown: list[bool] = []
    first = SingleInstance(tmp_path)
    first.show.connect(lambda: shown.append(True))
    assert show_other(tmp_path)
    qtbot.waitUntil(lambda: bool(shown), timeout=5000)
