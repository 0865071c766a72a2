"""The limit of one window per home folder. If the app is started again, the open window is shown instead."""

from __future__ import annotations

import getpass
import hashlib
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QDeadlineTimer, QLockFile, QObject, QThread, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

CONNECT_MS = 500
OPENING_MS = 10_000  # a window that is not listening by then is considered hung
AGAIN_MS = 50
SHOW = b"show"


def socket_name(home: Path) -> str:
    """Return the name of the local socket for this user and home folder."""
    text = f"{getpass.getuser()}\0{home}".encode()
    return f"poolhouse-{hashlib.sha256(text).hexdigest()[:16]}"


def show_other(home: Path) -> bool:
    """Ask an open window of this home folder to come to the front. Return whether there is one."""
    socket = QLocalSocket()
    socket.connectToServer(socket_name(home))
    if not socket.waitForConnected(CONNECT_MS):
        return False
    socket.write(SHOW)
    socket.waitForBytesWritten(CONNECT_MS)
    socket.disconnectFromServer()
    return True


def claim_lock(home: Path, opening_ms: int = OPENING_MS) -> QLockFile | None:
    """Acquire the window lock of this home folder. If another window holds it, show that window and return None.

    A new window takes about a second to start listening, so this retries for `opening_ms`. The home folder is
    created if necessary; if that fails, the window reports it later.
    """
    with suppress(OSError):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = QLockFile(str(home / "window.lock"))
    lock.setStaleLockTime(0)  # the lock is valid as long as its process lives
    patience = QDeadlineTimer(opening_ms)
    while not lock.tryLock(0) and not patience.hasExpired():
        if show_other(home):
            return None
        if lock.error() != QLockFile.LockError.LockFailedError:
            break  # nobody holds the lock, but its file cannot be created
        QThread.msleep(AGAIN_MS)
    return lock


class SingleInstance(QObject):
    """A local server that emits `show` when the user starts the app again."""

    show = Signal()

    def __init__(self, home: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._came)
        # With an access option, this replaces the socket of a killed window, on which nobody answered.
        self._server.listen(socket_name(home))

    def _came(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.disconnected.connect(socket.deleteLater)
            self.show.emit()
