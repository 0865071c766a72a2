"""The trace that a crash of the window leaves in a file; the next start finds it and says so."""

from __future__ import annotations

import faulthandler
from pathlib import Path
from typing import TextIO

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QGuiApplication

from app.gui.app.window import Told, Window

NAME, KEPT = "window.log", "window.log.1"  # in the folder of logs: diagnostics take them along


class CrashWatch:
    """Finds the trace of the last window; while it is entered, a crash of this one leaves its own."""

    def __init__(self, logs: Path) -> None:
        self._logs, self.details = logs, put_aside(logs)
        self._file: TextIO | None = None

    def __enter__(self) -> CrashWatch:
        try:
            self._logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = (self._logs / NAME).open("w", encoding="utf-8")
        except OSError:
            return self  # the disk is full or read-only: the window works, but a crash leaves no trace
        faulthandler.enable(self._file)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            faulthandler.disable()
            self._file.close()

    def tell(self, window: Window) -> None:
        """Say that the last window crashed, with details to copy."""
        if self.details:
            window.say(self._words)

    def _words(self, _: Window) -> Told:
        translate, details = QCoreApplication.translate, self.details
        sentence = translate("Diagnostics", "Poolhouse closed unexpectedly last time. Nothing was sent to anyone.")
        copy = (translate("Diagnostics", "Copy details"), lambda: QGuiApplication.clipboard().setText(details))
        return sentence, (copy,)


def put_aside(logs: Path) -> str:
    """Return the trace of the last crash, and put it aside; empty after an orderly end."""
    file = logs / NAME
    try:
        details = file.read_text("utf-8", "replace").strip()
        if details:
            file.replace(logs / KEPT)
    except OSError:
        return ""
    return details
