"""The launcher that finds the node for the window, or starts one that survives a crash of the window."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app import launcher
from app.core.errors import AppError, Refused
from app.core.reasons import said
from app.gui.api.launch import Endpoint
from app.machine import paths, running_node, uninstall
from app.machine.paths import Home
from app.machine.versions import restart
from app.network import identity

LOG = "start.log"  # output of the node during its start; later it writes its own log
LAST_WORDS_BYTES = 4096
END_WAIT_S, POLL_S = 12.0, 0.1  # how long to wait for a node to end; it is forced to end after eight seconds


class NodeLauncher:
    """The implementation of app/gui's Launcher, which uses files and processes."""

    def __init__(self, home: Home, options: Sequence[str] = ()) -> None:
        self._home, self._options = home, options
        self.home = home.root
        self._process: subprocess.Popen[bytes] | None = None
        self._erases = self._restarts = self._restarts_node = False
        self._n_crashes = 0
        self._judged: subprocess.Popen[bytes] | None = None  # the last process whose end was judged
        self._earlier: list[subprocess.Popen[bytes]] = []  # processes that may still be ending

    def find(self) -> Endpoint | None:
        runtime = running_node.read(self._home.runtime_file)
        if runtime is None:
            return None
        return Endpoint(runtime.pid, runtime.port, runtime.token, runtime.version)

    def start(self) -> None:
        self._note_crash()
        if restart.is_restarting(self.home):  # it appears by itself, and two would be in each other's way
            return
        command = paths.python_command("-m", "app", "node", "--home", str(self._home.root), *self._options)
        processes = (*self._earlier, *([self._process] if self._process else ()))
        self._earlier = [process for process in processes if process.poll() is None]
        try:
            self._home.create()
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=paths.python_environment() | {running_node.BY_WINDOW: "1", launcher.WATCHED: "1"},
                    **_in_own_group(),
                )
        except OSError as error:
            raise AppError("system_error", detail=str(error)) from None

    def _note_crash(self) -> None:
        """Count the crashes of the node. If it never started well, the next start uses the version before."""
        code = self._process.poll() if self._process is not None else None
        if code is None or self._process is self._judged:
            return
        self._judged = self._process
        if code not in launcher.ORDERLY:
            self._n_crashes += 1
            if self._n_crashes >= launcher.MOST_TRIES:
                restart.note_node_crash(code)

    def end(self) -> None:
        if self._process is not None and self.started and self.find() is None:
            self._process.terminate()

    def leave(self) -> None:
        running = running_node.read(self._home.runtime_file)
        try:
            identity.request_leave(self._home.create(), running.pid if running else None)
        except OSError as error:
            raise AppError("system_error", detail=str(error)) from None

    def erase_at_end(self) -> None:
        self._erases = True

    def restart_at_end(self) -> None:
        self._restarts, self._restarts_node = True, self.started

    def note_started(self) -> None:
        restart.note_window_started()

    def finish(self) -> list[str]:
        """Erase the home, or start another version, after the window has closed, if the user requested it.

        Return the reasons why files could not be erased.
        """
        if self._restarts:
            if self._restarts_node:
                self._wait_for_end()
            while restart.is_restarting(self.home):  # a node of its own, which is ready for the new window then
                time.sleep(POLL_S)
            restart.restart_at_end()
        if not self._erases:
            return []
        if not self._wait_for_end():
            return [said(Refused("erase_while_running", home=str(self.home)))]
        try:
            erased = asyncio.run(uninstall.erase(self._home))
        except AppError as error:
            return [said(error)]
        return [said(reason) for reason in erased.left]

    def _wait_for_end(self) -> bool:
        """Wait until the node has ended, and return whether it has."""
        for _ in range(round(END_WAIT_S / POLL_S)):
            if running_node.read(self._home.runtime_file) is None and not self.started:
                return True
            time.sleep(POLL_S)
        return False

    def fate(self) -> str | None:
        if self._process is None or not self._process.poll():
            return None  # not started, still running, or ended normally
        return _start_failure(self._log) or said(AppError("node_stopped"))

    @property
    def started(self) -> bool:
        if self._process is not None and self._process.poll() is None:
            return True
        running = running_node.read(self._home.runtime_file)
        return running is not None and running.by_window

    @property
    def _log(self) -> Path:
        return self._home.logs / LOG


def _in_own_group() -> dict[str, Any]:
    """Return process options that keep a Ctrl-C or a crash of the window from ending the node."""
    if os.name == "nt":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW  # type: ignore[attr-defined,unused-ignore]
        return {"creationflags": flags}
    return {"start_new_session": True}


def _start_failure(log: Path) -> str:
    """Return the last line that the node wrote, or "" if any line is JSON, which reports that the node was ready."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LAST_WORDS_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    if any(line.startswith('{"') for line in lines):
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
