"""macOS: how long nobody touched this computer, and what fills its screen.

Written from the system's manual; not yet run there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Run = Callable[[Sequence[str]], str | None]

PMSET = ("/usr/bin/pmset", "-g", "assertions")
IOREG = ("/usr/sbin/ioreg", "-c", "IOHIDSystem", "-d", "4", "-r")


def idle_seconds(run: Run) -> float | None:
    """None where nothing tells."""
    return hid_seconds(run(IOREG) or "")


def full_screen(run: Run) -> bool | None:
    """Whether a film, slides or a game keep the display on: macOS tells no program what fills the
    screen without a permission of its own. None where nothing tells."""
    text = run(PMSET)
    return None if text is None else display_kept_on(text)


def display_kept_on(text: str) -> bool | None:
    """From `pmset -g assertions`: the sum line of `PreventUserIdleDisplaySleep`."""
    found = re.search(r"^\s*PreventUserIdleDisplaySleep\s+([01])\s*$", text, re.MULTILINE)
    return found[1] == "1" if found else None


def hid_seconds(text: str) -> float | None:
    """From ioreg's `"HIDIdleTime" = 1234567890`, nanoseconds; the least of several."""
    found = re.findall(r'"HIDIdleTime"\s*=\s*(\d{1,20})\b', text)
    return min(map(int, found)) / 1e9 if found else None
