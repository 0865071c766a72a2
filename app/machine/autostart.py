"""Support for starting Poolhouse at sign-in, with each operating system's own mechanism.

Nothing is changed unless the user asks for it.
"""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from xml.parsers.expat import ExpatError

from app import launcher
from app.core.errors import Refused
from app.core.reasons import os_cause
from app.machine.installation import installation, window_starter
from app.machine.paths import Home, write_atomically
from app.machine.sensors.owner_activity import tool_output

HIDDEN = "--hidden"  # show only the tray icon
NODE = "node"  # the subcommand that runs without a window


class Entry(Protocol):
    """An entry in the operating system's list of programs to start at sign-in."""

    where: str  # shown to the user

    def is_on(self) -> bool: ...
    def write(self, command: Sequence[str]) -> None: ...
    def remove(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Autostart:
    """The current autostart state, and the file or registry value that records it."""

    on: bool
    where: str


def state(entry: Entry | None = None) -> Autostart:
    """Read the current state from the system, because other programs can change it. Blocks briefly."""
    entry = entry or system_entry()
    return Autostart(entry.is_on(), entry.where)


def set_enabled(on: bool, home: Home, entry: Entry | None = None, *, headless: bool = False) -> Autostart:
    """Turn autostart on or off, and return the resulting state. Raises Refused.

    headless: whether to start only the node, without the window.
    """
    entry = entry or system_entry()
    try:
        if on:
            entry.write(command(home, headless=headless))
        else:
            entry.remove()
    except OSError as error:
        raise Refused("autostart_failed", where=entry.where, why=os_cause(error)) from None
    return state(entry)


def system_entry() -> Entry:
    """Return the autostart entry for this operating system."""
    if sys.platform == "win32":
        return RunKey()
    if sys.platform == "darwin":
        return LaunchAgent(Path.home())
    return DesktopEntry(desktop_folder(os.environ, Path.home()))


def user_unit() -> Entry:
    """Return the systemd user unit that starts a node without a desktop. Raises Refused on systems other than Linux."""
    if not sys.platform.startswith("linux"):
        raise Refused("autostart_no_unit")
    return UserUnit(unit_folder(os.environ, Path.home()))


def all_entries() -> list[Entry]:
    """Return every autostart entry that may exist on this operating system."""
    units = [user_unit()] if sys.platform.startswith("linux") else []
    return [system_entry(), *units]


def command(home: Home, *, headless: bool = False) -> list[str]:
    """Return the command line that starts Poolhouse hidden in the tray, or only its node if `headless` is set.

    Raises Refused if the program cannot be found.
    """
    home_options = [] if home.is_default else ["--home", str(home.root)]
    return [program(os.environ.get, Path.exists), NODE if headless else HIDDEN, *home_options]


def program(setting: Callable[[str], str | None], exists: Callable[[Path], bool]) -> str:
    """Return the executable that a user would launch. Raises Refused if there is none.

    This is the AppImage, the installed program, or the script next to the Python interpreter. On Windows, the path of
    the installation depends on the user, so the executable is looked up next to the app's folder.
    """
    image, unpacked = setting("APPIMAGE"), setting("APPDIR")
    base = setting(launcher.BASE) or sys.executable  # an update may have put the running version elsewhere
    if image and unpacked and Path(base).is_relative_to(unpacked):
        return image  # otherwise the variables belong to another AppImage, which started this program
    if installed := installation():
        if installed.command:
            return installed.command
        if exists(window_starter()):
            return str(window_starter())
    name = "poolhouse.exe" if sys.platform == "win32" else "poolhouse"
    beside = Path(sys.executable).parent / name
    if not exists(beside):
        raise Refused("autostart_no_program")
    return str(beside)


# Linux: a desktop entry in the autostart folder (freedesktop.org, Autostart 0.5)

DESKTOP_FILE = "poolhouse.desktop"
RESERVED = frozenset(" \t\n\"'\\><~|&;$*?#()`")  # characters that require quotes in Exec
OFF = ("Hidden=true", "X-GNOME-Autostart-enabled=false")


def desktop_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder of this user's autostart entries.

    A relative XDG_CONFIG_HOME is ignored, as the standard requires.
    """
    config = environment.get("XDG_CONFIG_HOME", "")
    return (Path(config) if config.startswith("/") else home / ".config") / "autostart"


class DesktopEntry:
    """A desktop entry in the autostart folder.

    Desktops disable an entry by adding a line to its file, and ignore it if its program no longer exists.
    """

    def __init__(self, directory: Path, find_program: Callable[[str], object] = shutil.which) -> None:
        self._path, self._find_program = directory / DESKTOP_FILE, find_program
        self.where = str(self._path)

    def is_on(self) -> bool:
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        return entry_is_on(text) and bool(self._find_program(program_of(text)))

    def write(self, command: Sequence[str]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path, entry_text(command).encode())

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def entry_text(command: Sequence[str]) -> str:
    """Return the content of a desktop entry that runs `command`."""
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
    """Return whether a desktop would run the program of this entry."""
    lines = {re.sub(r"\s*=\s*", "=", line.strip(), count=1) for line in text.splitlines()}
    starts = any(line.startswith("Exec=") and line != "Exec=" for line in lines)
    return starts and not lines & set(OFF)


def exec_line(command: Sequence[str]) -> str:
    """Return the value of Exec, quoted as the standard requires and then escaped like any string value."""
    return " ".join(map(_exec_argument, command)).replace("\\", "\\\\")


def program_of(text: str) -> str:
    """Return the program that the entry starts, or "" if the entry cannot be parsed.

    Reverses the quoting of `exec_line`.
    """
    match = re.search(r"^\s*Exec\s*=\s*(.*)$", text, re.MULTILINE)
    try:
        words = shlex.split(match[1].replace("\\\\", "\\")) if match else []
    except ValueError:  # an unclosed quote
        words = []
    return words[0].replace("%%", "%") if words else ""


def _exec_argument(text: str) -> str:
    text = text.replace("%", "%%")
    if text and not RESERVED & set(text):
        return text
    inner = re.sub(r'(["`$\\])', r"\\\1", text)
    return f'"{inner}"'


# Linux without a screen: a systemd user unit that runs the node (systemd.unit(5), systemd.service(5)). It is enabled by
# the same link that `systemctl --user enable` creates. Nothing is started or stopped here.

UNIT_FILE = "poolhouse.service"
UNIT_HEADER = "# Made by `poolhouse autostart`, which removes it again."


def unit_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder of this user's systemd units.

    A relative XDG_CONFIG_HOME is ignored, as the standard requires.
    """
    config = environment.get("XDG_CONFIG_HOME", "")
    return (Path(config) if config.startswith("/") else home / ".config") / "systemd" / "user"


class UserUnit:
    """A systemd unit file, and the symbolic link that enables it.

    A unit written by the user can be enabled and disabled, but its file is never changed.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / UNIT_FILE
        self._link = directory / "default.target.wants" / UNIT_FILE
        self.where = str(self._path)

    def is_on(self) -> bool:
        return self._link.is_symlink() and self._link.exists()  # `systemctl --user enable` links the one we ship

    def write(self, command: Sequence[str]) -> None:
        self._link.parent.mkdir(parents=True, exist_ok=True)
        if self._is_ours() or not self._path.exists():
            write_atomically(self._path, unit_text(command).encode())
        self._link.unlink(missing_ok=True)
        self._link.symlink_to(self._path)

    def remove(self) -> None:
        self._link.unlink(missing_ok=True)
        with suppress(OSError):  # the folder contains other links, or does not exist
            self._link.parent.rmdir()
        if self._is_ours():
            self._path.unlink()

    def _is_ours(self) -> bool:
        try:
            return self._path.read_text(encoding="utf-8", errors="replace").startswith(UNIT_HEADER)
        except FileNotFoundError:
            return False


def unit_text(command: Sequence[str]) -> str:
    """Return the content of a unit that runs `command`."""
    return (
        f"{UNIT_HEADER}\n"
        "[Unit]\n"
        "Description=Poolhouse node\n"
        "\n"
        "[Service]\n"
        f"ExecStart={' '.join(map(_unit_argument, command))}\n"
        "Restart=on-failure\n"
        "\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def _unit_argument(text: str) -> str:
    """Quote an argument so that systemd does not expand anything in it."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'.replace("%", "%%").replace("$", "$$")


# macOS: a launch agent of this user. Written from Apple's documentation and not yet tested on a Mac.

LABEL = "org.poolhouse.Poolhouse"
Run = Callable[[Sequence[str]], str | None]


class LaunchAgent:
    """A launchd property list. The user can also disable it in System Settings."""

    def __init__(self, home: Path, run: Run = tool_output) -> None:
        self._path = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        self._run = run
        self.where = str(self._path)

    def is_on(self) -> bool:
        try:
            starts = agent_is_on(self._path.read_bytes())
        except OSError:
            return False
        return starts and not is_disabled(self._run(("launchctl", "print-disabled", _domain())))

    def write(self, command: Sequence[str]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path, agent_plist(command))
        self._run(("launchctl", "enable", f"{_domain()}/{LABEL}"))  # overrides the switch in System Settings

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def agent_plist(command: Sequence[str]) -> bytes:
    """Return the content of a property list that runs `command` once at each graphical sign-in."""
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
    """Return whether launchd would start the agent at sign-in."""
    try:
        properties = plistlib.loads(content)
    except (ValueError, ExpatError):
        return False
    if not isinstance(properties, dict):
        return False
    return bool(properties.get("RunAtLoad") and properties.get("ProgramArguments")) and not properties.get("Disabled")


def is_disabled(listing: str | None) -> bool:
    """Return whether `launchctl print-disabled` lists the agent as disabled.

    Older versions of macOS print `true` for disabled agents.
    """
    match = re.search(rf'"{re.escape(LABEL)}"\s*=>\s*(\w+)', listing or "")
    return match is not None and match[1] in ("disabled", "true")


def _domain() -> str:
    return f"gui/{os.getuid()}" if hasattr(os, "getuid") else "gui"


# Windows: a value in this user's Run key. Written from Microsoft's documentation and not yet tested on Windows.

RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
APPROVED = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"
VALUE_NAME = "Poolhouse"


def run_line(command: Sequence[str]) -> str:
    """Return the command line for the Run key, quoted as Windows requires."""
    return subprocess.list2cmdline(command)


def is_started(line: str | None, approval: bytes | None) -> bool:
    """Return whether Windows runs `line` at sign-in.

    Task Manager disables an entry by setting the lowest bit of the first byte of `approval`.
    """
    return bool(line and line.strip()) and not (approval and approval[0] & 1)


if sys.platform == "win32":
    import winreg

    class RunKey:
        """A value in the user's Run key. A second registry value records whether Task Manager has disabled it."""

        where = rf"HKEY_CURRENT_USER\{RUN}\{VALUE_NAME}"

        def is_on(self) -> bool:
            line, approval = _read_value(RUN), _read_value(APPROVED)
            return is_started(
                line if isinstance(line, str) else None, approval if isinstance(approval, bytes) else None
            )

        def write(self, command: Sequence[str]) -> None:
            with winreg.CreateKey(winreg.HKEY_CURRENT_USER, RUN) as key:
                winreg.SetValueEx(key, VALUE_NAME, 0, winreg.REG_SZ, run_line(command))
            _delete_value(APPROVED)

        def remove(self) -> None:
            _delete_value(RUN)
            _delete_value(APPROVED)

    def _read_value(path: str) -> object:
        try:
            with winreg.OpenKey(winreg.HKEY_CURRENT_USER, path) as key:
                return winreg.QueryValueEx(key, VALUE_NAME)[0]
        except FileNotFoundError:
            return None

    def _delete_value(path: str) -> None:
        try:
            with winreg.OpenKey(winreg.HKEY_CURRENT_USER, path, 0, winreg.KEY_SET_VALUE) as key:
                winreg.DeleteValue(key, VALUE_NAME)
        except FileNotFoundError:
            return

else:

    class RunKey:
        """A stub for systems other than Windows."""

        where = rf"HKEY_CURRENT_USER\{RUN}\{VALUE_NAME}"

        def is_on(self) -> bool:
            return False

        def write(self, command: Sequence[str]) -> None:
            raise OSError("this is not Windows")

        def remove(self) -> None:
            """Do nothing, because an entry never exists."""
