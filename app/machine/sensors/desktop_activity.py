"""The owner's activity on the desktop: the time since the last input, and whether a program fills the screen.

The code for macOS and Windows follows the vendors' documentation but has not been tested on these systems.
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
    """Return the seconds since the last keyboard or pointer input.

    Return None if the time is unknown or nobody is signed in.
    """
    if sys.platform == "win32":
        return windows_idle_seconds()
    if sys.platform == "darwin":
        return macos_idle_seconds(run)
    return linux_idle_seconds(run, os.environ, wayland.idle_seconds)


def full_screen(run: Run) -> bool | None:
    """Return whether the active window fills its screen, or None if the system does not report it."""
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
    """Return the idle seconds from the first source that reports them, or None if none does.

    The sources are GNOME, Wayland or X11, the screen saver, and the login manager. Under Wayland, X11 is not queried,
    because it sees only the input to its own windows.
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
        # in its own process, since Xlib terminates a process that loses its display
        seconds = x11_seconds(run(X11_IDLE) or "")
        if seconds is not None:
            return seconds
    if has_screen:
        seconds = saver_seconds(run(SAVER) or "", in_milliseconds="KDE" in desktop)
        if seconds:  # some screen savers answer 0 if they do not know
            return seconds
    return seat_seconds(run(SEAT) or "", time.monotonic())


def linux_full_screen(run: Run, environment: Mapping[str, str]) -> bool | None:
    """Return whether the active window fills the screen.

    Return None under Wayland, which hides other programs' windows.
    """
    if not environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return None
    return {"1": True, "0": False}.get((run(X11_FULL_SCREEN) or "").strip())


def mutter_seconds(text: str) -> float | None:
    """Parse the idle seconds from GNOME's answer in milliseconds, such as `(uint64 12345,)`."""
    match = re.fullmatch(r"\(uint64 (\d{1,18}),\)", text.strip())
    return int(match[1]) / 1000 if match else None


def saver_seconds(text: str, *, in_milliseconds: bool) -> float | None:
    """Parse the idle seconds from the screen saver's answer, such as `(uint32 12345,)`.

    According to the draft of freedesktop.org, the answer is in seconds, but KDE answers in milliseconds.
    """
    match = re.fullmatch(r"\(uint32 (\d{1,10}),\)", text.strip())
    return int(match[1]) / (1000 if in_milliseconds else 1) if match else None


def x11_seconds(text: str) -> float | None:
    """Parse the idle seconds from the milliseconds that x11_probe.py prints."""
    typed = text.strip()
    return int(typed) / 1000 if re.fullmatch(r"\d{1,18}", typed) else None


def seat_seconds(text: str, now_s: float) -> float | None:
    """Parse the idle seconds from the output of `loginctl show-seat`. Return None if nobody is logged in at the seat.

    now_s: the current time on CLOCK_MONOTONIC, which the output uses.
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
    """Return the idle seconds, or None if the system does not report them."""
    return hid_seconds(run(IOREG) or "")


def macos_full_screen(run: Run) -> bool | None:
    """Return whether a movie player, game or other program prevents the display from sleeping, or None if unknown.

    This is a substitute, because macOS reveals full-screen windows only to programs with a special permission.
    """
    text = run(PMSET)
    return None if text is None else display_kept_on(text)


def display_kept_on(text: str) -> bool | None:
    """Parse the summary line `PreventUserIdleDisplaySleep` in the output of `pmset -g assertions`."""
    match = re.search(r"^\s*PreventUserIdleDisplaySleep\s+([01])\s*$", text, re.MULTILINE)
    return match[1] == "1" if match else None


def hid_seconds(text: str) -> float | None:
    """Parse the idle seconds from ioreg's output: the smallest `"HIDIdleTime" = 1234567890`, in nanoseconds."""
    idle_times = re.findall(r'"HIDIdleTime"\s*=\s*(\d{1,20})\b', text)
    return min(map(int, idle_times)) / 1e9 if idle_times else None


# Windows

# QUERY_USER_NOTIFICATION_STATE in shellapi.h: full screen, Direct3D, presentation
FULL_SCREEN_STATES = frozenset({2, 3, 4})
TICKS = 1 << 32  # the counter is 32 bits of milliseconds since the start of the system, and wraps after 49.7 days


def seconds_between(now_ticks: int, last_ticks: int) -> float:
    """Return the seconds between two readings of the tick counter, which may have wrapped around."""
    passed = (now_ticks - last_ticks) % TICKS
    return 0.0 if passed > TICKS // 2 else passed / 1000  # the input came after our reading


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    class _LastInput(ctypes.Structure):
        _fields_ = [("size", wintypes.UINT), ("ticks", wintypes.DWORD)]

    def windows_idle_seconds() -> float | None:
        """Return the idle seconds, or None if they are unknown, for example in a service without a session."""
        info = _LastInput(ctypes.sizeof(_LastInput), 0)
        if not ctypes.windll.user32.GetLastInputInfo(ctypes.byref(info)):
            return None
        now_ticks = ctypes.windll.kernel32.GetTickCount() & (TICKS - 1)
        return seconds_between(now_ticks, info.ticks)

    def windows_full_screen() -> bool | None:
        """Return whether a program fills the screen, or None if the shell does not report it."""
        state = ctypes.c_int(0)
        failed = ctypes.windll.shell32.SHQueryUserNotificationState(ctypes.byref(state))
        return None if failed else state.value in FULL_SCREEN_STATES

else:

    def windows_idle_seconds() -> float | None:
        """Return None on systems other than Windows."""
        return None

    def windows_full_screen() -> bool | None:
        """Return None on systems other than Windows."""
        return None
