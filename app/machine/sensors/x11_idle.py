"""Run as a program: prints for how many milliseconds nobody touched this X display; fails without one.

A process of its own, because Xlib ends the process that loses its display.
"""

import ctypes
import sys


class _Info(ctypes.Structure):
    """XScreenSaverInfo of X11/extensions/scrnsaver.h."""

    _fields_ = [
        ("window", ctypes.c_ulong),
        ("state", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("til_or_since", ctypes.c_ulong),
        ("idle", ctypes.c_ulong),
        ("event_mask", ctypes.c_ulong),
    ]


def idle_milliseconds() -> int:
    """Raises OSError without the libraries, the display or its extension."""
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
        sys.stdout.write(f"{idle_milliseconds()}\n")
    except OSError as error:
        sys.exit(str(error))
