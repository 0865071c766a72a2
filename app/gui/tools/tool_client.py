"""The window's connection to the process that runs the tool servers, which is started on demand."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTimer, Signal
from shiboken6 import isValid

import app
from app.api.tools import (
    MAX_LINE_BYTES,
    CallTool,
    CancelCall,
    ListServers,
    NumberedRequest,
    OpenTools,
    Server,
    Servers,
    TestServer,
    ToolLine,
    ToolRequest,
)
from app.core.errors import AppError, Unreachable
from app.core.wire_json import LineSplitter, LineTooLong, error_of
from app.decoding import convert, decode

T = TypeVar("T")
FILE = "tools.json"  # in the home, where the process keeps the servers
Done = Callable[[Any], object]
Failed = Callable[[AppError], object]

# The process has deadlines of its own, which are shorter. These are for the case that it hangs.
SECONDS = 30.0
START_SECONDS = 150.0  # of all servers of a chat
CALL_SECONDS = 200.0
WATCH_MS = 1_000
END_MS = 5_000  # the servers end within this time; then the process is killed
OURS = str(Path(app.__file__ or ".").resolve().parent.parent)


@dataclass(slots=True)
class _Waiting:
    """A request that has not been answered yet."""

    kind: type
    done: Done
    failed: Failed
    seconds_left: float


class ToolClient(QObject):
    """A client of the process. Each callback is called at most once; a process that hangs or fails is replaced."""

    changed = Signal()  # `servers` has changed

    def __init__(self, home: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._home = home
        self.servers: list[Server] = []  # as they were told last
        self._process: QProcess | None = None
        self._lines = LineSplitter(MAX_LINE_BYTES)
        self._waiting: dict[int, _Waiting] = {}
        self._number = 0
        self._watch = QTimer(self)
        self._watch.setInterval(WATCH_MS)
        self._watch.timeout.connect(self._check)

    @property
    def pid(self) -> int:
        """The process ID, or 0 if no process is running."""
        return self._process.processId() if self._process is not None else 0

    def refresh(self) -> None:
        """Request the list of servers. Start no process if no server has ever been added."""
        if self._process is None and not (self._home / FILE).exists():
            self._keep(Servers())
            return
        self.ask(ListServers(), Servers, self._keep, lambda _: None)

    def change(self, request: ToolRequest, done: Callable[[], object], failed: Failed) -> None:
        """Send a change. The response is the new list of servers."""

        def changed(servers: Servers) -> None:
            self._keep(servers)
            done()

        self.ask(request, Servers, changed, failed)

    def ask(self, request: ToolRequest, kind: type[T], done: Callable[[T], object], failed: Failed) -> int:
        """Send a request. Return its number for `cancel`."""
        self._number += 1
        process = self._process or self._start()
        self._waiting[self._number] = _Waiting(kind, done, failed, _patience(request))
        process.write(msgspec.json.encode(NumberedRequest(self._number, request)) + b"\n")
        self._watch.start()
        return self._number

    def cancel(self, number: int) -> None:
        """Cancel a request. Neither of its callbacks will be called."""
        if self._waiting.pop(number, None) is not None and self._process is not None:
            self._process.write(msgspec.json.encode(NumberedRequest(0, CancelCall(number))) + b"\n")

    def close(self) -> None:
        """End the process and all of its servers, and drop all unanswered requests."""
        self._waiting.clear()
        self._watch.stop()
        process, self._process = self._process, None
        if process is None:
            return
        process.finished.disconnect()
        process.closeWriteChannel()
        if not process.waitForFinished(END_MS):
            process.kill()
            process.waitForFinished(WATCH_MS)
        process.deleteLater()

    def _start(self) -> QProcess:
        process = self._process = QProcess(self)
        process.setProcessEnvironment(_environment())
        process.setWorkingDirectory(OURS)
        process.setStandardErrorFile(QProcess.nullDevice())
        process.readyReadStandardOutput.connect(self._read)
        process.finished.connect(lambda: self._lose(process))
        process.errorOccurred.connect(lambda: self._lose(process))
        self._lines = LineSplitter(MAX_LINE_BYTES)
        process.start(sys.executable, ["-P", "-m", "app.tools", str(self._home)])
        return process

    def _read(self) -> None:
        if self._process is None:
            return
        try:
            for line in self._lines.feed(bytes(self._process.readAllStandardOutput().data())):
                self._take(decode(line, ToolLine))
        except (LineTooLong, ValueError):
            self._lose(self._process)

    def _take(self, line: ToolLine) -> None:
        if line.news is not None:
            self._keep(line.news)
        waiting = self._waiting.pop(line.number, None)
        if waiting is None:
            return
        if line.error is not None:
            waiting.failed(error_of(msgspec.to_builtins(line.error)))
        else:
            waiting.done(convert(line.answer, waiting.kind))

    def _keep(self, servers: Servers) -> None:
        if servers.servers != self.servers:
            self.servers = servers.servers
            self.changed.emit()

    def _check(self) -> None:
        """End the process if it does not respond."""
        for waiting in self._waiting.values():
            waiting.seconds_left -= WATCH_MS / 1000
        if not self._waiting:
            self._watch.stop()
        elif min(waiting.seconds_left for waiting in self._waiting.values()) < 0 and self._process is not None:
            self._lose(self._process)

    def _lose(self, process: QProcess) -> None:
        """End a failed process. The next request starts a new one."""
        if process is not self._process or not isValid(process):
            return
        self._process = None
        if process.state() is QProcess.ProcessState.NotRunning:
            process.deleteLater()
        else:
            process.finished.connect(process.deleteLater)
            process.kill()
        lost, self._waiting = self._waiting, {}
        for waiting in lost.values():
            waiting.failed(Unreachable("tool_host_ended"))


def _patience(request: ToolRequest) -> float:
    match request:
        case CallTool():
            return CALL_SECONDS
        case OpenTools() | TestServer():
            return START_SECONDS
    return SECONDS


def _environment() -> QProcessEnvironment:
    """Return our environment, with this version of the app first on Python's path."""
    made = QProcessEnvironment.systemEnvironment()
    made.insert("PYTHONPATH", os.pathsep.join(filter(None, (OURS, os.environ.get("PYTHONPATH")))))
    return made
