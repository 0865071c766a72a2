"""A window in which nothing happens ends when it is asked to: no timer looks for that."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import signal
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from app.gui.app.application import python_signals
app = QApplication([])
signal.signal(signal.SIGTERM, lambda *_: app.quit())
with python_signals():
    QTimer.singleShot(0, lambda: print("rests", flush=True))
    app.exec()
assert signal.set_wakeup_fd(-1) == -1, "it is left to a socket that is closed"
"""
LATE_S = 60


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a program without asking it")
def test_a_window_at_rest_hears_that_it_shall_end() -> None:
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE) as window:
        assert window.stdout is not None
        assert window.stdout.readline() == b"rests\n"
        window.send_signal(signal.SIGTERM)
        try:
            assert window.wait(LATE_S) == 0
        finally:
            window.kill()
