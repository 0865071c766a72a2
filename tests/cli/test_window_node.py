"""The node that the window starts: ended while it starts, left alone once it serves."""

from __future__ import annotations

import time
from pathlib import Path

from app.cli.window_node import NodeLauncher
from app.machine import runtime_file
from app.machine.paths import Home

WITHIN_S = 20


def test_a_node_that_starts_can_be_ended(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "den")
    launcher = NodeLauncher(home, ["--port", "0", "--bind", "127.0.0.1", "--no-discovery"])
    launcher.end()  # none was started
    launcher.start()
    runtime_file.write(home.runtime_file, runtime_file.of_this_process(9, "token", "1"))
    launcher.end()
    assert launcher.fate() is None  # it can be found: it ends in order, when it is asked
    home.runtime_file.unlink()
    launcher.end()
    until = time.monotonic() + WITHIN_S
    while launcher.fate() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert not launcher.started
