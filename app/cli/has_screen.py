"""Whether a window can be shown here: a display, and the system's libraries that Qt needs."""

from __future__ import annotations

import ctypes
import os
import sys

from app.core.errors import AppError

# What the window toolkit's own packages do not bring along on Linux, and Debian's packages of it.
DRAWING = {
    "libglib-2.0.so.0": "libglib2.0-0", "libEGL.so.1": "libegl1", "libGL.so.1": "libgl1",
    "libdbus-1.so.3": "libdbus-1-3", "libfontconfig.so.1": "libfontconfig1",
    "libxkbcommon.so.0": "libxkbcommon0",
}  # fmt: skip
X11 = {
    "libxcb-cursor.so.0": "libxcb-cursor0", "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1", "libxcb-shape.so.0": "libxcb-shape0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}  # fmt: skip
WAYLAND = {
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
}


def has_screen() -> bool:
    """Whether a window can be shown: always on Windows and macOS; elsewhere where a display is named."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def require_libraries() -> None:
    """Raises AppError with the packages to install: Qt itself would end the process, without a word why."""
    if not sys.platform.startswith("linux"):
        return
    wanted = DRAWING | (WAYLAND if os.environ.get("WAYLAND_DISPLAY") else X11)
    missing = sorted(package for name, package in wanted.items() if not _loads(name))
    if missing:
        raise AppError("window_libraries", packages=" ".join(missing))


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
