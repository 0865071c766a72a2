"""`poolhouse autostart`: shows it, turns it on and off, with a window and without one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files of Linux")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(made))
    return made


def test_a_node_without_a_screen(poolhouse: Any, config: Path) -> None:
    unit = config / "systemd" / "user" / "poolhouse.service"
    assert "No node starts automatically." in poolhouse("autostart", "--headless").out
    said = poolhouse("autostart", "on", "--headless").out
    assert "A node starts at sign-in" in said
    assert "loginctl enable-linger" in said  # shown, never run
    assert '"node"' in unit.read_text()
    assert poolhouse("autostart", "--headless", "--json").json == {
        "on": True, "where": str(unit), "headless": True,
    }  # fmt: skip
    assert poolhouse("autostart", "--json").json["on"] is False
    assert "systemctl --user stop" in poolhouse("autostart", "off", "--headless").out
    assert not unit.exists()


def test_the_window_at_sign_in(poolhouse: Any, config: Path) -> None:
    assert poolhouse("autostart", "on", "--json").json["on"]
    assert "--hidden" in (config / "autostart" / "poolhouse.desktop").read_text()
    assert "showing only its tray icon" in " ".join(poolhouse("autostart").out.split())
    poolhouse("autostart", "off")
    assert not list((config / "autostart").iterdir())


def test_a_node_without_a_window_is_reported_beside_the_window(poolhouse: Any, config: Path) -> None:
    assert poolhouse("autostart").out == "Poolhouse does not start at sign-in.\n"
    poolhouse("autostart", "on", "--headless")
    first, *rest = poolhouse("autostart").out.splitlines()
    assert first == "Poolhouse's window does not start at sign-in."
    assert " ".join(rest).startswith("A node without a window starts at sign-in (")
