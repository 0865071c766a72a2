"""Windows: a worker ends with its node and holds no more than it may, by a Job Object. Not yet run there."""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_int64, c_size_t, c_uint32, c_uint64

EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
KILL_ON_CLOSE = 0x2000  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
PROCESS_MEMORY = (
    0x100  # JOB_OBJECT_LIMIT_PROCESS_MEMORY: what it commits; mapped files do not count
)
SET_QUOTA_AND_TERMINATE = 0x0101  # what AssignProcessToJobObject needs of the process


class Basic(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION."""

    _fields_ = (
        ("process_time", c_int64), ("job_time", c_int64), ("flags", c_uint32),
        ("least_set", c_size_t), ("most_set", c_size_t), ("most_processes", c_uint32),
        ("affinity", c_size_t), ("priority", c_uint32), ("scheduling", c_uint32),
    )  # fmt: skip


class Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("basic", Basic), ("io", c_uint64 * 6), ("process_memory", c_size_t),
        ("job_memory", c_size_t), ("peak_process", c_size_t), ("peak_job", c_size_t),
    )  # fmt: skip


def limits(most_bytes: int = 0) -> Limits:
    """What a job asks for. most_bytes: of private memory, of each of its processes; 0: any."""
    made = Limits()
    made.basic.flags = KILL_ON_CLOSE | (PROCESS_MEMORY if most_bytes else 0)
    made.process_memory = most_bytes
    return made


if sys.platform == "win32":
    from ctypes import wintypes

    import psutil

    class Job:
        """Holds a process; when the last handle is closed, also by our own death, it is ended."""

        def __init__(self, pid: int) -> None:
            """Raises OSError when the system refuses."""
            self._pid = pid
            kernel = self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            for name in ("CreateJobObjectW", "OpenProcess"):
                getattr(kernel, name).restype = wintypes.HANDLE
            self._handle = wintypes.HANDLE(kernel.CreateJobObjectW(None, None))
            process = wintypes.HANDLE(kernel.OpenProcess(SET_QUOTA_AND_TERMINATE, False, pid))
            held = self._ask(limits()) and kernel.AssignProcessToJobObject(self._handle, process)
            error = ctypes.get_last_error()
            kernel.CloseHandle(process)
            if not held:
                self.close()
                raise ctypes.WinError(error)

        def may_grow_by(self, n_bytes: int) -> None:
            """From now on its private memory may grow by so much: allocations beyond it fail. Raises OSError."""
            try:
                most_bytes = psutil.Process(self._pid).memory_info().private + n_bytes
            except psutil.NoSuchProcess:
                return  # it is gone, and whoever asks it next is told
            if not self._ask(limits(most_bytes)):
                raise ctypes.WinError(ctypes.get_last_error())

        def close(self) -> None:
            self._kernel.CloseHandle(self._handle)

        def _ask(self, wanted: Limits) -> bool:
            size = ctypes.sizeof(wanted)
            set_them = self._kernel.SetInformationJobObject
            return bool(set_them(self._handle, EXTENDED_LIMITS, ctypes.byref(wanted), size))

else:

    class Job:
        """Elsewhere a worker watches its parent and its memory itself (backends/worker/process.py)."""

        def __init__(self, pid: int) -> None:
            """Nothing to hold."""

        def may_grow_by(self, n_bytes: int) -> None:
            """Nothing to ask for."""

        def close(self) -> None:
            """Nothing was held."""
