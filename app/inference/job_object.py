"""Windows: a worker ends with its node, by a Job Object. Written from the system's manual; not yet run there."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
    KILL_ON_CLOSE = 0x2000  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
    SET_QUOTA_AND_TERMINATE = 0x0101  # what AssignProcessToJobObject needs of the process

    class _Basic(ctypes.Structure):
        _fields_ = [
            ("process_time", ctypes.c_int64),
            ("job_time", ctypes.c_int64),
            ("flags", wintypes.DWORD),
            ("least_set", ctypes.c_size_t),
            ("most_set", ctypes.c_size_t),
            ("most_processes", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("priority", wintypes.DWORD),
            ("scheduling", wintypes.DWORD),
        ]

    class _Extended(ctypes.Structure):
        _fields_ = [
            ("basic", _Basic),
            ("io", ctypes.c_uint64 * 6),
            ("process_memory", ctypes.c_size_t),
            ("job_memory", ctypes.c_size_t),
            ("peak_process", ctypes.c_size_t),
            ("peak_job", ctypes.c_size_t),
        ]

    class Job:
        """Holds a process; when the last handle is closed, also by our own death, it is ended."""

        def __init__(self, pid: int) -> None:
            """Raises OSError when the system refuses."""
            kernel = self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            for name in ("CreateJobObjectW", "OpenProcess"):
                getattr(kernel, name).restype = wintypes.HANDLE
            self._handle = wintypes.HANDLE(kernel.CreateJobObjectW(None, None))
            limits = _Extended()
            limits.basic.flags = KILL_ON_CLOSE
            size = ctypes.sizeof(limits)
            process = wintypes.HANDLE(kernel.OpenProcess(SET_QUOTA_AND_TERMINATE, False, pid))
            held = kernel.SetInformationJobObject(
                self._handle, EXTENDED_LIMITS, ctypes.byref(limits), size
            ) and kernel.AssignProcessToJobObject(self._handle, process)
            error = ctypes.get_last_error()
            kernel.CloseHandle(process)
            if not held:
                self.close()
                raise ctypes.WinError(error)

        def close(self) -> None:
            self._kernel.CloseHandle(self._handle)

else:

    class Job:
        """Elsewhere a worker watches its parent itself (backends/process.py)."""

        def __init__(self, pid: int) -> None:
            """Nothing to hold."""

        def close(self) -> None:
            """Nothing was held."""
