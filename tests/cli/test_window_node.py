"""The node that the window starts: ended while it starts, left alone once it serves."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from app import __version__
from app import launcher as program_launcher
from app.cli import window_node
from app.cli.window_node import NodeLauncher
from app.core.errors import AppError
from app.machine import running_node
from app.machine.paths import Home
from app.machine.versions import restart

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


def test_a_node_that_restarts_by_itself_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the window's node would take the home from the new version, whose start would fail."""
    monkeypatch.setattr(restart, "_wanted", [])
    monkeypatch.setattr("app.machine.paths.python_command", lambda *_: [sys.executable, "-c", "input()"])
    home = Home.at(tmp_path / "den").create()
    launcher = NodeLauncher(home)
    restart.restart_at_end(home.root)
    launcher.start()
    assert launcher.fate() is None
    assert not launcher.started
    restart.note_restarted(home.root)
    launcher.start()
    assert launcher._process is not None
    launcher._process.wait(WITHIN_S)


@pytest.fixture
def failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mark that this version failed, which an update installed."""
    versions = tmp_path / "versions"
    (versions / __version__).mkdir(parents=True)
    (versions / program_launcher.MARKS).mkdir()
    (versions / __version__ / program_launcher.MANIFEST).write_text(
        f'{{"version": "{__version__}", "commit": "c", "kind": "appimage", "command": "", "layers": {{}}}}'
    )
    monkeypatch.setenv(program_launcher.FOLDER, str(versions))
    monkeypatch.setenv(program_launcher.BASE, str(tmp_path))
    return versions / program_launcher.MARKS / f"{__version__}.failed"


def test_a_node_that_crashes_once_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: Path
) -> None:
    """Starts that start nothing find the same dead process again."""
    monkeypatch.setattr(restart, "_wanted", [])
    monkeypatch.setattr("app.machine.paths.python_command", lambda *_: [sys.executable, "-c", "exit(3)"])
    home = Home.at(tmp_path / "den").create()
    launcher = NodeLauncher(home)
    launcher.start()
    assert launcher._process is not None
    launcher._process.wait(WITHIN_S)
    restart.restart_at_end(home.root)
    for _ in range(3):
        launcher.start()
    restart.note_restarted(home.root)
    monkeypatch.setattr("app.machine.paths.python_command", lambda *_: [str(tmp_path / "missing")])
    for _ in range(3):
        with pytest.raises(AppError):
            launcher.start()
    assert not failed.exists()


def test_a_node_that_crashes_twice_gives_its_version_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: Path
) -> None:
    """The window runs on, and the next start uses the version before."""
    for does, gives_up in ((f"exit({program_launcher.REFUSED})", False), ("exit(3)", True)):
        code = does
        monkeypatch.setattr("app.machine.paths.python_command", lambda *_, code=code: [sys.executable, "-c", code])
        launcher = NodeLauncher(Home.at(tmp_path / "den"))
        for _ in range(3):
            launcher.start()
            assert launcher._process is not None
            launcher._process.wait(WITHIN_S)
        assert failed.exists() is gives_up
