"""How the window finds the node of a home, and starts one that outlives a window that crashes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.core.errors import AppError
from app.gui.launch import Endpoint
from app.lan import leaving
from app.machine import own_python, runtime_file
from app.machine.paths import Home

LOG = "start.log"  # what it says while it starts; from then on it writes a log of its own
LAST_WORDS_BYTES = 4096


class NodeLauncher:
    """The Launcher of app/gui, over files and processes."""

    def __init__(self, home: Home, options: Sequence[str] = ()) -> None:
        self._home, self._options = home, options
        self.home = home.root
        self._process: subprocess.Popen[bytes] | None = None
        self._before: list[subprocess.Popen[bytes]] = []  # that may still be ending

    def find(self) -> Endpoint | None:
        runtime = runtime_file.read(self._home.runtime_file)
        if runtime is None:
            return None
        return Endpoint(runtime.pid, runtime.port, runtime.token, runtime.version)

    def start(self) -> None:
        command = own_python.command(
            "-m", "app", "node", "--home", str(self._home.root), *self._options
        )
        earlier = (*self._before, *([self._process] if self._process else ()))
        self._before = [one for one in earlier if one.poll() is None]
        try:
            self._home.create()
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=own_python.environment(),
                    **_apart(),
                )
        except OSError as error:
            raise AppError("system_error", detail=str(error)) from None

    def end(self) -> None:
        if self._process is not None and self.started and self.find() is None:
            self._process.terminate()

    def leave(self) -> None:
        running = runtime_file.read(self._home.runtime_file)
        try:
            leaving.wish(self._home.create(), running.pid if running else None)
        except OSError as error:
            raise AppError("system_error", detail=str(error)) from None

    def fate(self) -> str | None:
        if self._process is None or self._process.poll() is None:
            return None
        return _last_line(self._log) or f"exit code {self._process.returncode}"

    @property
    def started(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def _log(self) -> Path:
        return self._home.logs / LOG


def _apart() -> dict[str, Any]:
    """A Ctrl-C or a crash of the window must not end the node."""
    if os.name == "nt":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW  # type: ignore[attr-defined,unused-ignore]
        return {"creationflags": flags}
    return {"start_new_session": True}


def _last_line(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LAST_WORDS_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
