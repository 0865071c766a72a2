"""Starting at sign-in: what this system really does, and turning it on and off. Only when asked to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.core.errors import Refused
from app.machine.autostart import autostart_linux, autostart_macos, autostart_systemd, autostart_windows
from app.machine.paths import Home

HIDDEN = "--hidden"  # only the tray's icon
NODE = "node"  # the command without a window


class Entry(Protocol):
    """Where one system keeps what starts at sign-in."""

    where: str  # a person finds it there

    def is_on(self) -> bool: ...
    def write(self, command: Sequence[str]) -> None: ...
    def remove(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Autostart:
    """As the system has it now."""

    on: bool
    where: str


def state(entry: Entry | None = None) -> Autostart:
    """Read back from the system, whoever wrote it. Blocks for a moment."""
    entry = entry or entry_here()
    return Autostart(entry.is_on(), entry.where)


def choose(on: bool, home: Home, entry: Entry | None = None, *, headless: bool = False) -> Autostart:
    """Turn it on or off, and say what the system has afterwards. headless: a node alone. Raises Refused."""
    entry = entry or entry_here()
    try:
        if on:
            entry.write(command(home, headless=headless))
        else:
            entry.remove()
    except OSError as error:
        why = error.strerror or str(error)
        raise Refused("autostart_failed", where=entry.where, why=why) from None
    return state(entry)


def entry_here() -> Entry:
    """This system's."""
    if sys.platform == "win32":
        return autostart_windows.RunKey()
    if sys.platform == "darwin":
        return autostart_macos.LaunchAgent(Path.home())
    return autostart_linux.DesktopEntry(autostart_linux.folder(os.environ, Path.home()))


def unit_here() -> Entry:
    """What starts a node where there is no desktop. Raises Refused where the system has none of that kind."""
    if not sys.platform.startswith("linux"):
        raise Refused("autostart_no_unit")
    return autostart_systemd.UserUnit(autostart_systemd.folder(os.environ, Path.home()))


def entries_here() -> list[Entry]:
    """All that may start Poolhouse on this system."""
    units = [unit_here()] if sys.platform.startswith("linux") else []
    return [entry_here(), *units]


def command(home: Home, *, headless: bool = False) -> list[str]:
    """What starts Poolhouse without its window, or only its node. Raises Refused where only its source is there."""
    ours = [] if home.is_default else ["--home", str(home.root)]
    return [program(os.environ.get, Path.exists), NODE if headless else HIDDEN, *ours]


def program(setting: Callable[[str], str | None], exists: Callable[[Path], bool]) -> str:
    """The file that a person starts: of the AppImage, of the package, or beside this Python."""
    image, unpacked = setting("APPIMAGE"), setting("APPDIR")
    if image and unpacked and Path(sys.executable).is_relative_to(unpacked):
        return image  # else they are of another AppImage that started us
    if getattr(sys, "frozen", False):
        return sys.executable
    name = "poolhouse.exe" if sys.platform == "win32" else "poolhouse"
    beside = Path(sys.executable).parent / name
    if not exists(beside):
        raise Refused("autostart_no_program")
    return str(beside)
