"""The owner's activity at the desktop, on each system: time since the last input, and whether a program fills the
screen.

The readings on macOS and Windows were written from their manuals and have not run there yet.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from app.machine.sensors import wayland_idle, x11_probe

Run = Callable[[Sequence[str]], str | None]


def idle_seconds(run: Run, wayland: wayland_idle.WaylandIdleWatch) -> float | None:
    """Return the seconds since the last key or pointer event; None when nobody is signed in or no source answers."""
    if sys.platform == "win32":
        return windows_idle_seconds()
    if sys.platform == "darwin":
        return macos_idle_seconds(run)
    return linux_idle_seconds(run, os.environ, wayland.idle_seconds)


def full_screen(run: Run) -> bool | None:
    """Return whether the window in front fills its screen; None where the system does not tell."""
    if sys.platform == "win32":
        return windows_full_screen()
    if sys.platform == "darwin":
        return macos_full_screen(run)
    return linux_full_screen(run, os.environ)


# Linux

MUTTER = (
    "gdbus", "call", "--session", "--timeout", "2", "--dest", "org.gnome.Mutter.IdleMonitor",
    "--object-path", "/org/gnome/Mutter/IdleMonitor/Core",
    "--method", "org.gnome.Mutter.IdleMonitor.GetIdletime",
)  # fmt: skip
SAVER = (
    "gdbus", "call", "--session", "--timeout", "2", "--dest", "org.freedesktop.ScreenSaver",
    "--object-path", "/org/freedesktop/ScreenSaver",
    "--method", "org.freedesktop.ScreenSaver.GetSessionIdleTime",
)  # fmt: skip
X11_PROBE = (sys.executable, "-I", "-S", str(Path(x11_probe.__file__ or "")))
X11_IDLE, X11_FULL_SCREEN = (*X11_PROBE, "idle"), (*X11_PROBE, "fullscreen")
SEAT = (
    "loginctl",
    "show-seat",
    "seat0",
    "--property=ActiveSession",
    "--property=IdleHint",
    "--property=IdleSinceHintMonotonic",
)


def linux_idle_seconds(
    run: Run, environment: Mapping[str, str], wayland: Callable[[Mapping[str, str]], float | None]
) -> float | None:
    """The first source that answers: GNOME's own, X11's, Wayland's, the screen saver's, the login manager's.

    None: none does. Under Wayland X11 knows only of its own windows, and is not asked.
    """
    has_screen = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    desktop = environment.get("XDG_CURRENT_DESKTOP", "").upper()
    if has_screen and "GNOME" in desktop:
        seconds = mutter_seconds(run(MUTTER) or "")
        if seconds is not None:
            return seconds
    if environment.get("WAYLAND_DISPLAY"):
        seconds = wayland(environment)
        if seconds is not None:
            return seconds
    elif environment.get("DISPLAY"):
        seconds = x11_seconds(run(X11_IDLE) or "")  # a process of its own: Xlib ends the process that loses its display
        if seconds is not None:
            return seconds
    if has_screen:
        seconds = saver_seconds(run(SAVER) or "", in_milliseconds="KDE" in desktop)
        if seconds:  # 0 is also said by those that cannot tell
            return seconds
    return seat_seconds(run(SEAT) or "", time.monotonic())


def linux_full_screen(run: Run, environment: Mapping[str, str]) -> bool | None:
    """Return whether the window in front fills the screen. Wayland hides other programs' windows: None."""
    if not environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return None
    return {"1": True, "0": False}.get((run(X11_FULL_SCREEN) or "").strip())


def mutter_seconds(text: str) -> float | None:
    """Parse `(uint64 12345,)`, milliseconds."""
    match = re.fullmatch(r"\(uint64 (\d{1,18}),\)", text.strip())
    return int(match[1]) / 1000 if match else None


def saver_seconds(text: str, *, in_milliseconds: bool) -> float | None:
    """Parse `(uint32 12345,)`: seconds, as the draft of freedesktop.org has it; KDE reports milliseconds."""
    match = re.fullmatch(r"\(uint32 (\d{1,10}),\)", text.strip())
    return int(match[1]) / (1000 if in_milliseconds else 1) if match else None


def x11_seconds(text: str) -> float | None:
    """Return the seconds in the milliseconds that x11_probe.py prints."""
    typed = text.strip()
    return int(typed) / 1000 if re.fullmatch(r"\d{1,18}", typed) else None


def seat_seconds(text: str, now_s: float) -> float | None:
    """Parse `loginctl show-seat`: the idle hint of the desktop. None when nobody is logged in there.

    now_s: of the same clock as the hint, which is CLOCK_MONOTONIC.
    """
    fields = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if not fields.get("ActiveSession"):
        return None
    if fields.get("IdleHint") != "yes":
        return 0.0
    since = fields.get("IdleSinceHintMonotonic", "")
    return max(0.0, now_s - int(since) / 1e6) if re.fullmatch(r"\d{1,18}", since) else 0.0


# macOS

PMSET = ("/usr/bin/pmset", "-g", "assertions")
IOREG = ("/usr/sbin/ioreg", "-c", "IOHIDSystem", "-d", "4", "-r")


def macos_idle_seconds(run: Run) -> float | None:
    """Return the idle seconds; None where the system does not tell."""
    return hid_seconds(run(IOREG) or "")


def macos_full_screen(run: Run) -> bool | None:
    """Return whether a movie, slides or a game keep the display on; None where the system does not tell.

    macOS does not tell a program what fills the screen unless it has a permission of its own.
    """
    text = run(PMSET)
    return None if text is None else display_kept_on(text)


def display_kept_on(text: str) -> bool | None:
    """Parse `pmset -g assertions`: the sum line of `PreventUserIdleDisplaySleep`."""
    match = re.search(r"^\s*PreventUserIdleDisplaySleep\s+([01])\s*$", text, re.MULTILINE)
    return match[1] == "1" if match else None


def hid_seconds(text: str) -> float | None:
    """Parse ioreg's `"HIDIdleTime" = 1234567890`, nanoseconds; the least of several."""
    idle_times = re.findall(r'"HIDIdleTime"\s*=\s*(\d{1,20})\b', text)
    return min(map(int, idle_times)) / 1e9 if idle_times else None


# Windows

# QUERY_USER_NOTIFICATION_STATE of shellapi.h: a program that fills the screen, Direct3D, slides
FULL_SCREEN_STATES = frozenset({2, 3, 4})
TICKS = 1 << 32  # milliseconds since the system's start, in 32 bits: back to 0 after 49.7 days


def seconds_between(now_ticks: int, last_ticks: int) -> float:
    """Return the seconds between two readings of the tick counter, which may have wrapped around in between."""
    passed = (now_ticks - last_ticks) % TICKS
    return 0.0 if passed > TICKS // 2 else passed / 1000  # the input came after our reading


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    class _LastInput(ctypes.Structure):
        _fields_ = [("size", wintypes.UINT), ("ticks", wintypes.DWORD)]

    def windows_idle_seconds() -> float | None:
        """Return the idle seconds; None where the system does not tell, as for a service without a session."""
        info = _LastInput(ctypes.sizeof(_LastInput), 0)
        if not ctypes.windll.user32.GetLastInputInfo(ctypes.byref(info)):
            return None
        now_ticks = ctypes.windll.kernel32.GetTickCount() & (TICKS - 1)
        return seconds_between(now_ticks, info.ticks)

    def windows_full_screen() -> bool | None:
        """Return whether the screen is filled; None where the shell does not tell."""
        state = ctypes.c_int(0)
        failed = ctypes.windll.shell32.SHQueryUserNotificationState(ctypes.byref(state))
        return None if failed else state.value in FULL_SCREEN_STATES

else:

    def windows_idle_seconds() -> float | None:
        """Return None: only Windows is asked."""
        return None

    def windows_full_screen() -> bool | None:
        """Return None: only Windows is asked."""
        return None
