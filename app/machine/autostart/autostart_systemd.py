"""Linux without a screen: a unit of this person's systemd that runs the node (systemd.unit(5), systemd.service(5)).

It is enabled by the link that `systemctl --user enable` makes; nothing is started or stopped here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from app.machine.paths import write_atomically

NAME = "poolhouse.service"
OURS = "# Made by `poolhouse autostart`, which removes it again."


def folder(environment: Mapping[str, str], home: Path) -> Path:
    """Where this person's units lie. A relative XDG_CONFIG_HOME counts as none (the standard)."""
    given = environment.get("XDG_CONFIG_HOME", "")
    return (Path(given) if given.startswith("/") else home / ".config") / "systemd" / "user"


class UserUnit:
    """A file, and the link that has it started. One that a person wrote is linked, and never changed."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        self._wanted = directory / "default.target.wants" / NAME
        self.where = str(self._path)

    def is_on(self) -> bool:
        return self._wanted.is_symlink() and self._path.is_file()

    def write(self, command: Sequence[str]) -> None:
        self._wanted.parent.mkdir(parents=True, exist_ok=True)
        if self._is_ours() or not self._path.exists():
            write_atomically(self._path, unit_text(command).encode())
        self._wanted.unlink(missing_ok=True)
        self._wanted.symlink_to(self._path)

    def remove(self) -> None:
        self._wanted.unlink(missing_ok=True)
        with suppress(OSError):  # others are in it, or it is not there
            self._wanted.parent.rmdir()
        if self._is_ours():
            self._path.unlink()

    def _is_ours(self) -> bool:
        try:
            return self._path.read_text(encoding="utf-8", errors="replace").startswith(OURS)
        except FileNotFoundError:
            return False


def unit_text(command: Sequence[str]) -> str:
    """The whole file."""
    return (
        f"{OURS}\n"
        "[Unit]\n"
        "Description=Poolhouse node\n"
        "\n"
        "[Service]\n"
        f"ExecStart={' '.join(map(_argument, command))}\n"
        "Restart=on-failure\n"
        "\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def _argument(text: str) -> str:
    """Quoted, with nothing in it that systemd would fill in."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'.replace("%", "%%").replace("$", "$$")
