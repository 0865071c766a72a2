"""Linux: how long nobody touched this computer, and what fills its screen, as the desktop tells it."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from app.machine.sensors import x11_fullscreen, x11_idle

Run = Callable[[Sequence[str]], str | None]

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
X11 = (sys.executable, "-I", "-S", str(Path(x11_idle.__file__ or "")))
X11_SCREEN = (sys.executable, "-I", "-S", str(Path(x11_fullscreen.__file__ or "")))
SEAT = (
    "loginctl",
    "show-seat",
    "seat0",
    "--property=ActiveSession",
    "--property=IdleHint",
    "--property=IdleSinceHintMonotonic",
)


def idle_seconds(
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
        seconds = x11_seconds(run(X11) or "")  # a process of its own: Xlib ends whoever loses it
        if seconds is not None:
            return seconds
    if has_screen:
        seconds = saver_seconds(run(SAVER) or "", in_milliseconds="KDE" in desktop)
        if seconds:  # 0 is also said by those that cannot tell
            return seconds
    return seat_seconds(run(SEAT) or "", time.monotonic())


def full_screen(run: Run, environment: Mapping[str, str]) -> bool | None:
    """Whether the window in front fills the screen. Wayland tells programs nothing of others: None."""
    if not environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return None
    return {"1": True, "0": False}.get((run(X11_SCREEN) or "").strip())


def mutter_seconds(text: str) -> float | None:
    """From `(uint64 12345,)`, milliseconds."""
    found = re.fullmatch(r"\(uint64 (\d{1,18}),\)", text.strip())
    return int(found[1]) / 1000 if found else None


def saver_seconds(text: str, *, in_milliseconds: bool) -> float | None:
    """From `(uint32 12345,)`: seconds, as the draft of freedesktop.org has it; KDE tells milliseconds."""
    found = re.fullmatch(r"\(uint32 (\d{1,10}),\)", text.strip())
    return int(found[1]) / (1000 if in_milliseconds else 1) if found else None


def x11_seconds(text: str) -> float | None:
    """From what senses_x11.py prints, milliseconds."""
    typed = text.strip()
    return int(typed) / 1000 if re.fullmatch(r"\d{1,18}", typed) else None


def seat_seconds(text: str, now_s: float) -> float | None:
    """From `loginctl show-seat`: the hint that the desktop gave. None when nobody is logged in there.

    now_s: of the same clock as the hint, which is CLOCK_MONOTONIC.
    """
    fields = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if not fields.get("ActiveSession"):
        return None
    if fields.get("IdleHint") != "yes":
        return 0.0
    since = fields.get("IdleSinceHintMonotonic", "")
    return max(0.0, now_s - int(since) / 1e6) if re.fullmatch(r"\d{1,18}", since) else 0.0
