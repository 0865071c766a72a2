"""A program that queries the X display: `idle` prints the milliseconds since the last input, `fullscreen` 1 or 0.

It runs as a separate process because Xlib terminates a process that loses its display. It fails if there is no display.
"""

import ctypes
import sys
from ctypes import byref, c_char_p, c_int, c_long, c_ulong, c_void_p

ANY_TYPE, SUCCESS = 0, 0  # AnyPropertyType and Success in X11/X.h
MAX_STATES = 64  # of one window


class Display:
    """A connection to the X display for reading window properties. Raises OSError if there is no display."""

    def __init__(self) -> None:
        self._x11 = ctypes.CDLL("libX11.so.6")
        self._x11.XOpenDisplay.restype = c_void_p
        self._x11.XDefaultRootWindow.argtypes = [c_void_p]
        self._x11.XDefaultRootWindow.restype = c_ulong
        self._x11.XInternAtom.argtypes = [c_void_p, c_char_p, c_int]
        self._x11.XInternAtom.restype = c_ulong
        self._x11.XFree.argtypes = [c_void_p]
        self._x11.XGetWindowProperty.argtypes = [
            c_void_p, c_ulong, c_ulong, c_long, c_long, c_int, c_ulong,
            c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,
        ]  # fmt: skip
        self._display = self._x11.XOpenDisplay(None)
        if not self._display:
            raise OSError("no display")

    def atom(self, name: str) -> int:
        return int(self._x11.XInternAtom(self._display, name.encode(), 0))

    def root(self) -> int:
        return int(self._x11.XDefaultRootWindow(self._display))

    def numbers(self, window: int, name: str) -> list[int]:
        """Return the 32-bit numbers of a window property, or none if it is not set. Xlib delivers them as longs."""
        kind, width, many, left = c_ulong(), c_int(), c_ulong(), c_ulong()
        values = c_void_p()
        code = self._x11.XGetWindowProperty(
            self._display, window, self.atom(name), 0, MAX_STATES, 0, ANY_TYPE,
            byref(kind), byref(width), byref(many), byref(left), byref(values),
        )  # fmt: skip
        if code != SUCCESS or not values.value:
            return []
        longs = ctypes.cast(values, ctypes.POINTER(c_ulong))
        numbers = [int(longs[at]) for at in range(many.value)] if width.value == 32 else []
        self._x11.XFree(values)
        return numbers


def fills_screen() -> bool:
    """Return whether the active window is in full-screen mode. Raises OSError without a display or EWMH support."""
    display = Display()
    if not display.numbers(display.root(), "_NET_SUPPORTED"):
        raise OSError("no EWMH window manager")
    front = display.numbers(display.root(), "_NET_ACTIVE_WINDOW")[:1]
    full = display.atom("_NET_WM_STATE_FULLSCREEN")
    return any(full in display.numbers(window, "_NET_WM_STATE") for window in front if window)


class _Info(ctypes.Structure):
    """The structure XScreenSaverInfo of X11/extensions/scrnsaver.h."""

    _fields_ = [
        ("window", ctypes.c_ulong),
        ("state", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("til_or_since", ctypes.c_ulong),
        ("idle", ctypes.c_ulong),
        ("event_mask", ctypes.c_ulong),
    ]


def idle_milliseconds() -> int:
    """Return the time since the last input. Raises OSError if a library, the display or the extension is missing."""
    x11, saver = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXss.so.1")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XDefaultRootWindow.argtypes = [ctypes.c_void_p]
    x11.XDefaultRootWindow.restype = ctypes.c_ulong
    saver.XScreenSaverQueryInfo.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p]
    display = x11.XOpenDisplay(None)
    if not display:
        raise OSError("no display")
    info = _Info()
    root = x11.XDefaultRootWindow(display)
    if not saver.XScreenSaverQueryInfo(display, root, ctypes.byref(info)):
        raise OSError("no screen saver extension")
    return int(info.idle)


if __name__ == "__main__":
    try:
        reading = idle_milliseconds() if sys.argv[1] == "idle" else int(fills_screen())
        sys.stdout.write(f"{reading}\n")
    except OSError as error:
        sys.exit(str(error))
