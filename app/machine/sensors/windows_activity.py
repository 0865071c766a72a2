"""Windows: how long nobody touched this session, and what fills its screen.

Written from the system's manual; not yet run there.
"""

from __future__ import annotations

import sys

# QUERY_USER_NOTIFICATION_STATE of shellapi.h: a program that fills the screen, Direct3D, slides
FULL_SCREEN_STATES = frozenset({2, 3, 4})
TICKS = 1 << 32  # milliseconds since the system's start, in 32 bits: back to 0 after 49.7 days


def idle_of(now_ticks: int, last_ticks: int) -> float:
    """Seconds between two readings of the tick counter, which may have begun anew in between."""
    passed = (now_ticks - last_ticks) % TICKS
    return 0.0 if passed > TICKS // 2 else passed / 1000  # the input came after our reading


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    class _LastInput(ctypes.Structure):
        _fields_ = [("size", wintypes.UINT), ("ticks", wintypes.DWORD)]

    def idle_seconds() -> float | None:
        """None where the system does not tell, as for a service without a session."""
        info = _LastInput(ctypes.sizeof(_LastInput), 0)
        if not ctypes.windll.user32.GetLastInputInfo(ctypes.byref(info)):
            return None
        now_ticks = ctypes.windll.kernel32.GetTickCount() & (TICKS - 1)
        return idle_of(now_ticks, info.ticks)

    def full_screen() -> bool | None:
        """None where the shell does not tell."""
        state = ctypes.c_int(0)
        failed = ctypes.windll.shell32.SHQueryUserNotificationState(ctypes.byref(state))
        return None if failed else state.value in FULL_SCREEN_STATES

else:

    def idle_seconds() -> float | None:
        """Asked on Windows only."""
        return None

    def full_screen() -> bool | None:
        """Asked on Windows only."""
        return None
