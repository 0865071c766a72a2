"""The node that the window starts: ended while it starts, left alone once it serves."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from app.cli import window_node
from app.cli.window_node import NodeLauncher
from app.machine import running_node
from app.machine.paths import Home

WITHIN_S = 20


def test_a_node_that_starts_can_be_ended(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "den")
    launcher = NodeLauncher(home, ["--port", "0", "--bind", "127.0.0.1", "--no-discovery"])
    launcher.end()  # none was started
    launcher.start()
    running_node.write(home.runtime_file, running_node.of_this_process(home.runtime_file, 9, "token", "1"))
    launcher.end()
    assert launcher.fate() is None  # it can be found: it ends in order, when it is asked
    home.runtime_file.unlink()
    launcher.end()
    until = time.monotonic() + WITHIN_S
    while launcher.fate() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert not launcher.started


def test_the_next_window_may_end_what_a_killed_one_started(tmp_path: Path) -> None:
    """Otherwise its node would keep running forever, like a service."""
    home = Home.at(tmp_path / "den")
    first = NodeLauncher(home, ["--port", "0", "--bind", "127.0.0.1", "--no-discovery"])
    first.start()
    until = time.monotonic() + WITHIN_S
    while first.find() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert NodeLauncher(home).started
    assert first._process is not None
    first._process.terminate()
    first._process.wait(WITHIN_S)
    assert not NodeLauncher(home).started


def test_a_node_that_no_window_started_is_left(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "den").create()
    file = home.runtime_file
    running_node.write(file, running_node.of_this_process(file, 9, "token", "1"))
    assert not NodeLauncher(home).started


@pytest.mark.parametrize(
    ("does", "fate"),
    [
        ("print('{\"id\": 1}', flush=True); exit(3)", "The background service stopped unexpectedly."),
        ("exit('Port 5 cannot be used.')", "Port 5 cannot be used."),
        ("exit(3)", "The background service stopped unexpectedly."),
        ("exit(0)", None),
    ],
)
def test_its_end_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, fate: str | None) -> None:
    monkeypatch.setattr("app.machine.paths.python_command", lambda *_: [sys.executable, "-c", does])
    launcher = NodeLauncher(Home.at(tmp_path / "den"))
    launcher.start()
    until = time.monotonic() + WITHIN_S
    while launcher.started and time.monotonic() < until:
        time.sleep(0.05)
    assert launcher.fate() == fate


def test_what_was_asked_to_be_erased_goes_once_all_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "file")
    monkeypatch.setattr(window_node, "END_WAIT_S", 0.2)
    home = Home.at(tmp_path / "den").create()
    (home.identity / "identity.pem").write_text("me")
    launcher = NodeLauncher(home)
    assert launcher.finish() == []  # nobody asked
    assert home.root.exists()
    launcher.erase_at_end()
    running_node.write(home.runtime_file, running_node.of_this_process(home.runtime_file, 9, "token", "1"))
    (sentence,) = launcher.finish()
    assert "is running" in sentence
    assert (home.identity / "identity.pem").exists()
    home.runtime_file.unlink()
    assert launcher.finish() == []
    assert not home.root.exists()
