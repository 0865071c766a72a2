"""macOS: how long nobody touched this computer. Written from the system's manual; not yet run there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Run = Callable[[Sequence[str]], str | None]

IOREG = ("/usr/sbin/ioreg", "-c", "IOHIDSystem", "-d", "4", "-r")


def idle_seconds(run: Run) -> float | None:
    """None where nothing tells."""
    return hid_seconds(run(IOREG) or "")


def hid_seconds(text: str) -> float | None:
    """From ioreg's `"HIDIdleTime" = 1234567890`, nanoseconds; the least of several."""
    found = re.findall(r'"HIDIdleTime"\s*=\s*(\d{1,20})\b', text)
    return min(map(int, found)) / 1e9 if found else None
