"""The worker's use of the operating system: pipes, huge pages, exit with the parent, and memory limits."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")

PIPE_BYTES = 1 << 20  # with Linux's default of 64 KiB each large frame takes two context switches
WATCH_SECONDS = 1.0
PR_SET_PDEATHSIG = 1
ROOM_TO_LOAD = 1.1  # a node kills the worker at 10% above the limit (SAFETY.md 8)
# memory beyond the limit, in total and per thread, before the system refuses allocations
SPARE_BYTES, THREAD_BYTES = 512 << 20, 16 << 20
# environment variable that is set if this worker may be asked to evaluate grammars (fork_server.py)
GRAMMARS_VARIABLE = "POOLHOUSE_FORMS"
TUNABLES = "GLIBC_TUNABLES"
ALLOCATOR = {TUNABLES: "glibc.malloc.hugetlb=1"}  # has no effect outside glibc


def cpu_quota_cores(groups: Path = GROUPS, own: Path = OWN) -> float | None:
    """Return the CPU quota, in cores, set by this process's control groups, or None if there is none."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return min((cores for line in lines for cores in _limits(line, groups)), default=None)


def _limits(line: str, groups: Path) -> Iterator[float]:
    """Yield the quotas, in cores, of one control group hierarchy, given its line in /proc/self/cgroup."""
    _, controllers, path = line.split(":", 2)
    if controllers and "cpu" not in controllers.split(","):
        return
    for group in (Path(path), *Path(path).parents):
        folder = groups / ("cpu" if controllers else "") / group.relative_to("/")
        try:
            if controllers:
                quota = (folder / "cpu.cfs_quota_us").read_text(encoding="utf-8").strip()
                period = (folder / "cpu.cfs_period_us").read_text(encoding="utf-8").strip()
            else:
                quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
        except (OSError, ValueError):
            continue  # the root group has no quota
        if quota not in ("max", "-1"):
            yield int(quota) / int(period)


def use_huge_pages() -> None:
    """Restart this process with an allocator setting that makes glibc request huge pages from Linux.

    Each decoded token reads all weights once. With 4 KiB pages, address translation takes up to a quarter of that time.
    glibc reads the setting only at startup. The restart takes 30 ms and preserves the process id and the pipes. It is
    skipped if the node has already set the variable.
    """
    if sys.platform != "linux" or TUNABLES in os.environ:
        return
    os.environ.update(ALLOCATOR)
    with suppress(OSError):  # continue without huge pages
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606  our own command line


def take_pipes() -> tuple[int, int]:
    """Return the file descriptors for reading and writing frames.

    From then on, everything else that is written to stdout goes to stderr, including output from native code.
    """
    if sys.platform == "win32":
        import msvcrt

        for fd in (0, 1):
            msvcrt.setmode(fd, os.O_BINARY)
    frames_in, frames_out = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for fd in (frames_in, frames_out):
        _enlarge(fd)
    return frames_in, frames_out


def _enlarge(fd: int) -> None:
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # not a pipe, or the user's pipe memory is exhausted
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def end_with_parent() -> None:
    """Make this process exit when its parent does, even during a long computation."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before the call
            os._exit(1)
    else:
        # The thread mostly sleeps, and native code releases the GIL while computing.
        threading.Thread(target=_watch, args=(parent,), name="parent watch", daemon=True).start()


def _watch(parent: int) -> None:
    """Exit when the parent does.

    On Windows the parent id never changes. There, the node's Job Object ends this process.
    """
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)


def resident_bytes() -> int:
    """Return the resident memory of this process.

    On systems that report only the peak, return the peak. On Windows, return 0.
    """
    if sys.platform == "linux":
        held = _statm(1)
    elif sys.platform == "win32":
        held = 0
    else:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        held = peak if sys.platform == "darwin" else peak << 10
    return held


@contextmanager
def limited_growth(n_bytes: int, *, mapped: bool) -> Iterator[None]:
    """Limit the growth of this process's memory inside the context, so that larger allocations fail. Linux only.

    mapped: limit the whole address space. Otherwise, only private memory is limited, because mapped files can be
    evicted on demand.
    """
    if sys.platform != "linux":
        yield
    else:
        import resource

        limit = resource.RLIMIT_AS if mapped else resource.RLIMIT_DATA
        before, hard = resource.getrlimit(limit)
        most = _statm(0 if mapped else 5) + n_bytes
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(limit, (most, hard))
        try:
            yield
        finally:
            resource.setrlimit(limit, (before, hard))


def address_bytes() -> int:
    """Return the size of this process's address space, or 0 on systems other than Linux."""
    return _statm(0) if sys.platform == "linux" else 0


def peak_bytes() -> int:
    """Return the peak resident memory of this process. Not available on Windows."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def forget_statm() -> None:
    """Discard the statm file that was opened before a fork, because it describes the parent's memory."""
    _statm_file.cache_clear()


def address_at_most(most: int) -> None:
    """Limit the size of the address space. Later calls may change the limit. Linux only."""
    if sys.platform == "linux":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def memory_allowance(limit_bytes: int, threads: int) -> int:
    """Return how much memory a worker with this limit may allocate beyond its memory before loading."""
    return int(limit_bytes * ROOM_TO_LOAD) + SPARE_BYTES + threads * THREAD_BYTES


def keep_below(n_bytes: int) -> None:
    """Limit private memory, so that larger allocations fail. Linux only.

    Later calls may change the limit.
    """
    if sys.platform == "linux":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = n_bytes if hard == resource.RLIM_INFINITY else min(n_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def private_bytes() -> int:
    """Return the size of this process's private writable memory, or 0 on systems other than Linux.

    Unused pages are included.
    """
    return _statm(5) if sys.platform == "linux" else 0


def _statm(index: int) -> int:
    """Return a field of /proc/self/statm in bytes (see proc(5)). Linux only.

    Field 0 is the address space, 1 is resident memory, and 5 is private writable memory.
    """
    return int(os.pread(_statm_file(), 200, 0).split()[index]) * os.sysconf("SC_PAGESIZE")


@lru_cache(maxsize=1)
def _statm_file() -> int:
    """Return the open statm file.

    It is never closed, because a confined process may be unable to reopen it (confine.py).
    """
    return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
