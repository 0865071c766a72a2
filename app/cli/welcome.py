"""`poolhouse` alone: what works already, and what to type for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from app import __version__
from app.cli.face import Face
from app.cli.options import HomeOption, JsonOption

if TYPE_CHECKING:
    from rich.console import RenderableType

FIRST_STEPS = (
    ("poolhouse demo", "see it work: three machines on this computer answer"),
    ("poolhouse node", "start the node of this machine; leave it running"),
    ("poolhouse pair --open", "add a machine: shows a code and an address"),
    ("poolhouse pair ADDRESS", "on the machine to add: type that code"),
    ("poolhouse models", "the models on the shelf; `import FILE` adds one"),
    ("poolhouse load MODEL", "place a model on the machines"),
    ('poolhouse ask "…"', "ask it something"),
    ("poolhouse status", "machines, memory, layers"),
    ("poolhouse doctor", "checks, each with its cause and its cure"),
    ("poolhouse --help", "all commands"),
)
SENTENCE = "The app window is not part of this version yet. Everything works from here:"

VersionOption = Annotated[bool, typer.Option("--version", help="Show the version.")]


def add_to(program: typer.Typer) -> None:
    program.callback(invoke_without_command=True)(welcome)


def welcome(
    context: typer.Context,
    home: HomeOption = None,
    as_json: JsonOption = False,
    version: VersionOption = False,
) -> None:
    """The computers of one household run one language model together."""
    if context.invoked_subcommand is not None:
        if home is not None or as_json:
            raise typer.BadParameter("Put --home and --json behind the command.")
        return
    face = Face(as_json)
    steps = [{"command": command, "does": does} for command, does in FIRST_STEPS]
    known = {"version": __version__, "note": SENTENCE, "commands": steps}
    face.result(known, lambda: f"Poolhouse {__version__}" if version else _screen())


def _screen() -> RenderableType:
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
    return Group(title, Text(), Text(SENTENCE), Text(), table)
