"""A second start shows the first window, a killed one is in nobody's way, and another home is another app."""

from __future__ import annotations

import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PySide6.QtCore import QDir
from pytestqt.qtbot import QtBot

from app.gui.app.single_instance import SingleInstance, claim_lock, show_other, socket_name


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
    assert socket_name(tmp_path / "den") != socket_name(tmp_path / "attic")
    assert str(tmp_path) not in socket_name(tmp_path / "den")  # nobody else reads it from the socket's name
    first.deleteLater()


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe of Windows ends with its process")
def test_a_window_that_was_killed_is_in_nobody_s_way(qtbot: QtBot, tmp_path: Path) -> None:
    left = Path(QDir.tempPath()) / socket_name(tmp_path)
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(left))
    assert left.exists()
    assert not show_other(tmp_path)
    shown: list[bool] = []
    first = SingleInstance(tmp_path)
    first.show.connect(lambda: shown.append(True))
    assert show_other(tmp_path)
    qtbot.waitUntil(lambda: bool(shown), timeout=5000)


def test_of_two_starts_at_once_one_becomes_the_window(qtbot: QtBot, tmp_path: Path) -> None:
    first = claim_lock(tmp_path)
    assert first is not None
    with ThreadPoolExecutor() as pool:
        second = pool.submit(claim_lock, tmp_path)
        time.sleep(0.2)  # the first one builds its window
        listens = SingleInstance(tmp_path)
        with qtbot.waitSignal(listens.show, timeout=5000):
            pass
        assert second.result(timeout=60) is None


def test_the_very_first_start_waits_for_nobody(tmp_path: Path) -> None:
    """The first start once waited ten seconds for a lock in a missing folder, as did each start on a full disk."""
    claimed = claim_lock(tmp_path / "new" / "home", opening_ms=3_600_000)
    assert claimed is not None
    assert claimed.isLocked()
    (tmp_path / "file").touch()
    kept_out = claim_lock(tmp_path / "file" / "home", opening_ms=3_600_000)
    assert kept_out is not None
    assert not kept_out.isLocked()


def test_a_window_that_hangs_before_it_listens_keeps_nobody_out(tmp_path: Path) -> None:
    first = claim_lock(tmp_path)
    assert first is not None
    assert claim_lock(tmp_path, opening_ms=200) is not None
