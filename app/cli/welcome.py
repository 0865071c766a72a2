"""The command `poolhouse` without a subcommand. It opens the window or, if there is no screen, lists the first
steps."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from app import __version__
from app.cli import terminal_text
from app.cli.options import HomeOption, JsonOption, new_home_note
from app.cli.output import Output
from app.core.errors import AppError

# Libraries that Qt's wheels do not include on Linux, and the Debian packages that have them.
DRAWING_LIBRARIES = {
    "libglib-2.0.so.0": "libglib2.0-0",
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libxkbcommon.so.0": "libxkbcommon0",
}
X11_LIBRARIES = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}
WAYLAND_LIBRARIES = {"libwayland-cursor.so.0": "libwayland-cursor0", "libwayland-egl.so.1": "libwayland-egl1"}


def has_screen() -> bool:
    """Return whether a window can be shown.

    This is always the case on Windows and macOS, and on other systems if a display is set.
    """
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def require_libraries() -> None:
    """Raise AppError with the packages to install if Qt's libraries are missing.

    Otherwise Qt would end the process without an explanation.
    """
    if not sys.platform.startswith("linux"):
        return
    libraries = DRAWING_LIBRARIES | (WAYLAND_LIBRARIES if os.environ.get("WAYLAND_DISPLAY") else X11_LIBRARIES)
    missing = sorted(package for name, package in libraries.items() if not _can_load(name))
    if missing:
        raise AppError("window_libraries", packages=" ".join(missing))


def _can_load(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


if TYPE_CHECKING:
    from rich.console import RenderableType

FIRST_STEPS = (
    ("poolhouse demo", "see it work with three nodes on this computer"),
    ("poolhouse node", "start the node of this machine and leave it running"),
    ("poolhouse pair --open", "add a machine: shows a code and an address"),
    ("poolhouse pair ADDRESS", "on the machine to add: enter that code"),
    ("poolhouse models", "list your models; `import FILE` adds one"),
    ("poolhouse load MODEL", "load a model onto the machines"),
    ('poolhouse ask "…"', "ask a question"),
    ("poolhouse status", "machines, memory, layers"),
    ("poolhouse doctor", "check this computer and see how to fix problems"),
    ("poolhouse --help", "all commands"),
)
NO_SCREEN = "There is no screen for the window. Everything works from the command line:"

VersionOption = Annotated[bool, typer.Option("--version", help="Show the version.")]


def welcome(
    context: typer.Context,
    home: HomeOption = None,
    as_json: JsonOption = False,
    version: VersionOption = False,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Show only the tray icon, not the window; used at sign-in.")
    ] = False,
) -> None:
    """The computers of one household run one language model together."""
    if context.invoked_subcommand is not None:
        return
    if has_screen() and not as_json and not version:
        _open_window(home, hidden)
    out = Output(as_json)
    steps = [{"command": command, "does": does} for command, does in FIRST_STEPS]
    content = {"version": __version__, "note": _note(), "commands": steps}
    out.result(content, lambda: f"Poolhouse {__version__}" if version else _welcome_view())


def _note() -> str:
    """Return the introduction to the first steps. It mentions `--home` unless the home is the default."""
    option = terminal_text.home_option()
    return f"{NO_SCREEN} (add{option} to each command except the demo)" if option else NO_SCREEN


def _open_window(home: Path | None, hidden: bool) -> NoReturn:
    """Show the window until the user quits, then end the process."""
    require_libraries()
    from app.cli.window_node import NodeLauncher
    from app.gui.app.application import start
    from app.machine.paths import Home

    if note := new_home_note(home):
        Output().note(note)
    launcher = NodeLauncher(Home.at(home))
    code = start(launcher, hidden=hidden)
    for sentence in launcher.finish():
        typer.echo(sentence, err=True)
    raise typer.Exit(code)


def _welcome_view() -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for command, does in FIRST_STEPS:
        table.add_row(command, does)
    title = Text(f"Poolhouse {__version__}", style="bold")
    title.append(": your computers run one language model together.", style="not bold")
    return Group(title, Text(), Text(_note()), Text(), table)
