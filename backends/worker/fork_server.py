"""A server that forks processes on behalf of a worker that may not start processes itself.

Malicious code in the worker can therefore start only a limited number of processes. The server is forked before the
worker is confined, opens no user files, and reads only one byte with each socket that it receives.
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

from backends.worker import confine, process_resources

MOST = 16  # concurrent processes
NEW = b"n"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

# arguments: a connection, and the current size of this process's address space
Serve = Callable[[socket.socket, int], None]


class Starter:
    """The worker's connection to the fork server."""

    def __init__(self, make_ready: Callable[[], Serve]) -> None:
        """Fork the server. Raises OSError if no process can be started.

        make_ready: called in the server at the first request. It returns the function that each new process runs.
        """
        self._socket, other = socket.socketpair()
        if not _fork():
            try:
                _start(other.fileno(), make_ready)
            finally:
                os._exit(0)
        other.close()

    def close(self) -> None:
        """End the server."""
        self._socket.close()

    def new(self) -> socket.socket:
        """Start a process and return a connection to it. Raises OSError."""
        ours, other = socket.socketpair()
        with other:
            socket.send_fds(self._socket, [NEW], [other.fileno()])
        return ours


@lru_cache(maxsize=1)
def of_grammars() -> Starter:
    """Return this worker's fork server for grammar processes, starting it if necessary. Raises OSError."""
    return Starter(_ready_for_grammars)


def end() -> None:
    """Stop this worker's fork server if it is running."""
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
        warnings.simplefilter("ignore", DeprecationWarning)  # the child does not use the parent's threads
        return os.fork()


def _start(fd: int, make_ready: Callable[[], Serve]) -> None:
    """Run the fork server until its worker closes the connection."""
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
        held = process_resources.address_bytes()  # a confined child cannot read this itself
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
    """Isolate a new process and return its connection.

    This closes all other file descriptors and discards standard output and error.
    """
    process_resources.forget_statm()
    gc.disable()  # garbage collection could close files that the parent has open
    faulthandler.disable()
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the process ends with its worker
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    os.dup2(fd, 3)
    most = os.sysconf("SC_OPEN_MAX")
    os.closerange(4, most if most > 0 else 1 << 16)
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=3)
