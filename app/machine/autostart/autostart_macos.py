"""macOS: a launch agent of this person. Written from the system's manual; not yet run there."""

from __future__ import annotations

import os
import plistlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.parsers.expat import ExpatError

from app.machine.paths import write_atomically
from app.machine.sensors.owner_activity import output_of

LABEL = "org.poolhouse.Poolhouse"
Run = Callable[[Sequence[str]], str | None]


class LaunchAgent:
    """One property list. A person may also turn it off in the system's settings."""

    def __init__(self, home: Path, run: Run = output_of) -> None:
        self._path = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        self._run = run
        self.where = str(self._path)

    def is_on(self) -> bool:
        try:
            starts = agent_is_on(self._path.read_bytes())
        except OSError:
            return False
        return starts and not turned_off(self._run(("launchctl", "print-disabled", _domain())))

    def write(self, command: Sequence[str]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path, agent(command))
        self._run(("launchctl", "enable", f"{_domain()}/{LABEL}"))  # undoes the system's own switch

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def agent(command: Sequence[str]) -> bytes:
    """The whole file: started once at each sign-in at a screen, and not again when it ends."""
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(command),
            "RunAtLoad": True,
            "ProcessType": "Interactive",
            "LimitLoadToSessionType": "Aqua",
        }
    )


def agent_is_on(content: bytes) -> bool:
    """Whether launchd would start it at sign-in."""
    try:
        found = plistlib.loads(content)
    except (ValueError, ExpatError):
        return False
    if not isinstance(found, dict):
        return False
    return bool(found.get("RunAtLoad") and found.get("ProgramArguments")) and not found.get("Disabled")


def turned_off(listing: str | None) -> bool:
    """Whether `launchctl print-disabled` names it as disabled; older systems write `true`."""
    found = re.search(rf'"{re.escape(LABEL)}"\s*=>\s*(\w+)', listing or "")
    return found is not None and found[1] in ("disabled", "true")


def _domain() -> str:
    return f"gui/{os.getuid()}" if hasattr(os, "getuid") else "gui"
