"""Linux: the desktop entry that is started at sign-in (freedesktop.org, Autostart 0.5)."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from app.machine.paths import write_atomically

NAME = "poolhouse.desktop"
RESERVED = frozenset(" \t\n\"'\\><~|&;$*?#()`")  # these need quotes in Exec
OFF = ("Hidden=true", "X-GNOME-Autostart-enabled=false")


def folder(environment: Mapping[str, str], home: Path) -> Path:
    """Where this person's entries lie. A relative XDG_CONFIG_HOME counts as none (the standard)."""
    given = environment.get("XDG_CONFIG_HOME", "")
    return (Path(given) if given.startswith("/") else home / ".config") / "autostart"


class DesktopEntry:
    """One file. Desktops turn entries off by a line in it, and pass over one whose program is gone."""

    def __init__(self, directory: Path, found: Callable[[str], object] = shutil.which) -> None:
        self._path, self._found = directory / NAME, found
        self.where = str(self._path)

    def is_on(self) -> bool:
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        return entry_is_on(text) and bool(self._found(program_of(text)))

    def write(self, command: Sequence[str]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path, entry_text(command).encode())

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def entry_text(command: Sequence[str]) -> str:
    """The whole file."""
    return (
        "[Desktop Entry]\n"
        "Type=Application\n"
        "Name=Poolhouse\n"
        "Comment=The computers of one household run one language model together\n"
        f"Exec={exec_line(command)}\n"
        "Icon=poolhouse\n"
        "Terminal=false\n"
        "X-GNOME-Autostart-enabled=true\n"
    )


def entry_is_on(text: str) -> bool:
    """Whether a desktop would start it."""
    lines = {re.sub(r"\s*=\s*", "=", line.strip(), count=1) for line in text.splitlines()}
    starts = any(line.startswith("Exec=") and line != "Exec=" for line in lines)
    return starts and not lines & set(OFF)


def exec_line(command: Sequence[str]) -> str:
    """The value of Exec: quoted where the standard asks for it, then escaped as any string is."""
    return " ".join(map(_argument, command)).replace("\\", "\\\\")


def program_of(text: str) -> str:
    """What the entry starts; empty where that cannot be read. Quoted and escaped as `exec_line` does it."""
    found = re.search(r"^\s*Exec\s*=\s*(.*)$", text, re.MULTILINE)
    try:
        words = shlex.split(found[1].replace("\\\\", "\\")) if found else []
    except ValueError:  # a quote that nothing ends
        words = []
    return words[0].replace("%%", "%") if words else ""


def _argument(text: str) -> str:
    text = text.replace("%", "%%")
    if text and not RESERVED & set(text):
        return text
    inner = re.sub(r'(["`$\\])', r"\\\1", text)
    return f'"{inner}"'
