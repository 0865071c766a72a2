"""The switch for sign-in shows what the system has, and changes it, through a real node."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.this_computer.rule_controls import AutostartSwitch
from tests.gui.desk import desk, follow
from tests.node.pool import node


def test_it_shows_and_changes_what_the_system_has(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    entry = tmp_path / "config" / "autostart" / "poolhouse.desktop"
    with node(tmp_path / "den", "den"):
        made = desk(qapp, tmp_path / "den")
        follow(qtbot, made.services)
        row = AutostartSwitch(made.services)
        qtbot.addWidget(row)
        row.show()
        qtbot.waitUntil(row.switch.isEnabled, timeout=5000)
        assert not row.switch.isChecked()
        row.switch.click()
        qtbot.waitUntil(lambda: entry.exists() and row._call is None, timeout=5000)
        assert row.switch.isChecked()
        text = entry.read_text()
        assert f"--hidden --home {tmp_path / 'den'}" in text
        entry.write_text(text.replace("enabled=true", "enabled=false"))  # the desktop's own switch
        row.refresh()
        qtbot.waitUntil(lambda: not row.switch.isChecked(), timeout=5000)
        entry.unlink()
        entry.mkdir()  # in the way
        row.switch.click()
        qtbot.waitUntil(lambda: "could not be changed" in row.words.text(), timeout=5000)
        assert not row.switch.isChecked()
        assert row.switch.isEnabled()
        made.services.pool.stop()
