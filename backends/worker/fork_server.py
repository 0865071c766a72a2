"""A server that forks processes for a worker that may start none itself, so that an intruder can start only a few of
them.

The starter is forked before the worker is confined. It opens nobody's files, and reads nothing but one byte with each
socket that it is handed.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import socket
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from backends.worker import confine, process

MOST = 16  # at once
NEW = b"n"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

Serve = Callable[[socket.socket, int], None]  # a connection; the address space of this process by now


class Starter:
    """The worker's connection to the starter."""

    def __init__(self, make_ready: Callable[[], Serve]) -> None:
        """Fork the starter. Raises OSError where no process may be started.

        make_ready: called once in the starter, when it is first asked; returns what each process does.
        """
        self._socket, other = socket.socketpair()
        if not _fork():
            try:
                _start(other.fileno(), make_ready)
            finally:
                os._exit(0)
        other.close()

    def close(self) -> None:
        """End the starter."""
        self._socket.close()

    def new(self) -> socket.socket:
        """Return a connection to a new process. Raises OSError."""
        ours, other = socket.socketpair()
        with other:
            socket.send_fds(self._socket, [NEW], [other.fileno()])
        return ours


@lru_cache(maxsize=1)
def of_grammars() -> Starter:
    """Return this process's starter, forking it if necessary. Raises OSError."""
    return Starter(_ready_for_grammars)


def end() -> None:
    """End this process's starter, and so everything that it forked."""
    if of_grammars.cache_info().currsize:
        of_grammars().close()
        of_grammars.cache_clear()


def _ready_for_grammars() -> Serve:
    from backends import grammar_process
    from backends.llamacpp import binding

    binding.load()
    return grammar_process.serve


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the copy leaves the others' threads alone
        return os.fork()


def _start(fd: int, make_ready: Callable[[], Serve]) -> None:
    """Run the starter until its worker is gone."""
    asks = _alone(fd)
    confine.confine_as_told()
    os.environ.update(ONE_THREAD)
    serve: Serve | None = None
    living: set[int] = set()
    while True:
        order, handed, _, _ = socket.recv_fds(asks, len(NEW), 1)
        if not order:
            return
        serve = serve or make_ready()
        held = process.address_bytes()  # once it is confined, a copy cannot look itself
        _reap(living)
        if len(living) < MOST:
            child = _fork()
            if not child:
                try:
                    confine.start_nothing()
                    serve(_alone(handed[0]), held)
                finally:
                    os._exit(0)
            living.add(child)
        for descriptor in handed:
            os.close(descriptor)


def _reap(living: set[int]) -> None:
    for child in list(living):
        with suppress(ChildProcessError):
            if os.waitpid(child, os.WNOHANG)[0]:
                living.discard(child)


def _alone(fd: int) -> socket.socket:
    """Detach a new process: only the given descriptor stays open, and its error output goes nowhere."""
    process.forget_statm()
    gc.disable()  # what the one before had open is not closed by us
    faulthandler.disable()
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its worker
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    os.dup2(fd, 3)
    most = os.sysconf("SC_OPEN_MAX")
    os.closerange(4, most if most > 0 else 1 << 16)
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=3)
