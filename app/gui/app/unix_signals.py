"""Signals (Ctrl-C, an end that the system asks for) wake the window, which rests until something happens."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from PySide6.QtCore import QSocketNotifier

MOST_AT_ONCE = 4096  # signals


@contextmanager
def signals_heard() -> Iterator[None]:
    """Python calls its handlers only while it runs: each signal writes a byte, and to take it Python runs."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for one in (ours, theirs):
            one.setblocking(False)
        notifier = QSocketNotifier(ours.fileno(), QSocketNotifier.Type.Read)

        def take() -> None:
            with suppress(BlockingIOError):
                ours.recv(MOST_AT_ONCE)

        notifier.activated.connect(take)
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            notifier.setEnabled(False)
