"""A confined process that reads untrusted content, with limits on time, memory and the size of its replies."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTimer

import backends
from app.decoding import decode
from backends.readers.messages import LENGTHS, MAX_JSON_BYTES, Reply, Request, beginning

START_SECONDS = 20.0  # additional time for the first reply of a process, on a busy computer
WATCH_MS = 100
MAX_FAILURES, FAILURES_WITHIN_S = 5, 60.0  # of the process, after which it is left alone for a while
REST_SECONDS = 300.0

Answered = Callable[[Reply | None], object]  # None if the process failed at this request
# -P and the working directory keep code in the current folder out of the process, which is not confined at its start
OURS = str(Path(backends.__file__ or ".").resolve().parent.parent)
ARGUMENTS = ("-P", "-m", "backends.readers")


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """The limits for one request. idle_ms: how long an unused process is kept running."""

    seconds: float
    resident_bytes: int
    idle_ms: int


@dataclass(slots=True)
class _PendingRequest:
    """A request and its payload, kept in case they must be sent again to a new process."""

    parts: tuple[bytes, ...]
    answered: Answered


class ReaderProcess(QObject):
    """A child process that answers requests in order. It is started on demand, and again after a failure.

    If the process exceeds a limit during a request, the answer is None, and the next request gets a new process.
    """

    def __init__(self, kind: str, limits: ReaderLimits, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._kind, self._limits = kind, limits
        self._process: QProcess | None = None
        self._waiting: deque[_PendingRequest] = deque()  # the first one is being answered
        self._received = bytearray()
        self._head_since, self._n_replies = 0.0, 0
        self._failed_at: deque[float] = deque(maxlen=MAX_FAILURES)
        self._rests_until = 0.0
        self._watch = QTimer(self)
        self._watch.setInterval(WATCH_MS)
        self._watch.timeout.connect(self._check_limits)
        self._idle = QTimer(self)
        self._idle.setSingleShot(True)
        self._idle.setInterval(limits.idle_ms)
        self._idle.timeout.connect(self.close)

    @property
    def pid(self) -> int:
        """The process ID, or 0 if no process is running."""
        return self._process.processId() if self._process is not None else 0

    @property
    def is_resting(self) -> bool:
        """Return whether the process has failed so often that it is not restarted for a while."""
        return time.monotonic() < self._rests_until

    def ask(self, request: Request, answered: Answered, payload: bytes = b"") -> None:
        """Send a request. `answered` will be called exactly once."""
        pending_request = _PendingRequest((beginning(request, len(payload)), payload), answered)
        self._waiting.append(pending_request)
        if len(self._waiting) == 1:
            self._head_since = time.monotonic()
        self._idle.stop()
        if self._process is None:
            QTimer.singleShot(0, self, self._start)
        else:
            self._send(pending_request)
            self._watch.start()

    def close(self) -> None:
        """End the process and drop all requests without a reply."""
        self._waiting.clear()
        self._end()

    def _start(self) -> None:
        if self._process is not None or not self._waiting:
            return
        if self.is_resting:
            self._fail_all()
            return
        process = self._process = QProcess(self)
        process.setProcessEnvironment(_environment())
        process.setWorkingDirectory(OURS)
        process.setStandardErrorFile(QProcess.nullDevice())
        process.readyReadStandardOutput.connect(self._read)
        process.finished.connect(self._gone)
        process.errorOccurred.connect(self._failed_to_start)
        self._received.clear()
        self._n_replies = 0
        self._head_since = time.monotonic()
        process.start(sys.executable, [*ARGUMENTS, self._kind])
        for pending_request in tuple(self._waiting):
            self._send(pending_request)
        self._watch.start()

    def _send(self, pending_request: _PendingRequest) -> None:
        if self._process is None:
            return
        for part in pending_request.parts:
            self._process.write(part)
        self._forget_sent()

    def _forget_sent(self) -> None:
        """Release the request that is being answered, so that it is not sent again if the process fails."""
        if self._waiting:
            self._waiting[0].parts = ()

    def _read(self) -> None:
        if self._process is None:
            return
        self._received += self._process.readAllStandardOutput().data()
        while len(self._received) >= LENGTHS.size:
            json_bytes, payload_bytes = LENGTHS.unpack_from(self._received)
            end = LENGTHS.size + json_bytes
            if json_bytes > MAX_JSON_BYTES or payload_bytes:
                self._lose()
                return
            if len(self._received) < end:
                return
            body = bytes(self._received[LENGTHS.size : end])
            del self._received[:end]
            try:
                reply = decode(body, cast("type[Reply]", Reply))
            except msgspec.MsgspecError:
                self._lose()
                return
            if not self._answer(reply):
                return

    def _answer(self, reply: Reply) -> bool:
        """Deliver a reply. Return whether the process is still in use."""
        if not self._waiting:
            self._lose()
            return False
        answered = self._waiting.popleft().answered
        self._forget_sent()
        self._n_replies += 1
        self._head_since = time.monotonic()
        if not self._waiting:
            self._watch.stop()
            self._idle.start()
        answered(reply)
        return self._process is not None

    def _check_limits(self) -> None:
        """End the process if it exceeds its time or memory limit. On Linux, the process also limits itself."""
        if self._process is None or not self._waiting:
            self._watch.stop()
            return
        most = self._limits.seconds + (0 if self._n_replies else START_SECONDS)
        is_late = time.monotonic() - self._head_since > most
        if is_late or _resident_bytes(self.pid) > self._limits.resident_bytes:
            self._lose()

    def _gone(self) -> None:
        if self._process is not None:
            self._read()  # what it wrote before it ended
        if self._process is not None:
            self._lose()

    def _failed_to_start(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self._lose()

    def _lose(self) -> None:
        """Drop the process and the request that it was answering. Start a new one for the remaining requests."""
        self._end()
        now = time.monotonic()
        self._failed_at.append(now)
        if len(self._failed_at) == MAX_FAILURES and now - self._failed_at[0] < FAILURES_WITHIN_S:
            self._failed_at.clear()
            self._rests_until = now + REST_SECONDS
        if self._waiting:
            self._waiting.popleft().answered(None)
        if self._waiting:
            QTimer.singleShot(0, self, self._start)

    def _fail_all(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for pending_request in waiting:
            pending_request.answered(None)

    def _end(self) -> None:
        self._watch.stop()
        self._idle.stop()
        process, self._process = self._process, None
        if process is None:
            return
        process.readyReadStandardOutput.disconnect()
        process.finished.disconnect()
        process.errorOccurred.disconnect()
        if process.state() is not QProcess.ProcessState.NotRunning:
            process.finished.connect(process.deleteLater)
            process.kill()
            process.waitForFinished(WATCH_MS)
        else:
            process.deleteLater()


def _environment() -> QProcessEnvironment:
    """Return our environment, with this version of the reader first on Python's path."""
    made = QProcessEnvironment.systemEnvironment()
    made.insert("PYTHONPATH", os.pathsep.join(filter(None, (OURS, os.environ.get("PYTHONPATH")))))
    made.insert("PYTHONIOENCODING", "utf-8")
    return made


def _resident_bytes(pid: int) -> int:
    import psutil  # not needed to open the window

    with suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0
