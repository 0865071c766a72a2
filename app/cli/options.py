"""Options that several commands share, and parsers of their values."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Optional

import typer

from app.cli import terminal_text
from app.core.errors import Unreachable
from app.core.ids import MAX_NAME_CHARACTERS
from app.machine.paths import Home

UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
         "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}  # fmt: skip

STARTS_NODE = ("node", "autostart")  # the commands that start a node, now or at sign-in

MIN_BYTES_WITHOUT_UNIT = 1 << 20  # a smaller number without a unit is probably a mistake


def read_size(typed: str) -> int:
    """Parse a size in bytes, such as `2GiB`, `512 MiB`, `1.5g` or `0`.

    A small number without a unit is rejected, because it is probably a mistake.
    """
    match = re.fullmatch(r"\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([A-Za-z]{0,3})\s*", typed)
    unit = UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise typer.BadParameter(f"'{typed}' is not a size. Write it like 2GiB or 512MiB.")
    n_bytes = int(float(match[1]) * unit)
    if 0 < n_bytes < MIN_BYTES_WITHOUT_UNIT and not match[2]:
        number = match[1]
        raise typer.BadParameter(
            f"'{number}' needs a unit: write {number}GiB or {number}MiB. Without one, it means bytes."
        )
    return n_bytes


def read_duration(typed: str) -> float:
    """Parse a duration in seconds, such as `90s`, `5m`, `1.5h` or `2d`. Only 0 needs no unit."""
    match = re.fullmatch(r"\s*([0-9]{1,7}(?:\.[0-9]{1,3})?)\s*([smhd]?)\s*", typed.lower())
    if match is None:
        raise typer.BadParameter(f"'{typed}' is not a time. Write it like 30s, 5m or 1h.")
    if not match[2] and float(match[1]):
        number = match[1]
        raise typer.BadParameter(
            f"'{number}' needs a unit: write {number}s, {number}m or {number}h for seconds, minutes or hours."
        )
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def read_counts(typed: str, example: str = "5,6,5") -> list[int]:
    """Parse positive whole numbers separated by commas, such as `5,6,5`."""
    try:
        counts = [int(part) for part in typed.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise typer.BadParameter(f"'{typed}' is not a list of positive whole numbers. Write it like {example}.")
    return counts


def read_code(typed: str) -> str:
    """Parse the six digits of a pairing code, ignoring spaces and dashes."""
    digits = re.sub(r"[\s-]", "", typed)
    if not re.fullmatch(r"[0-9]{6}", digits):
        raise typer.BadParameter("A pairing code has six digits.")
    return digits


def read_home(typed: str) -> Path:
    """Parse a home folder. An empty name is rejected, because it would mean the current folder."""
    if not typed.strip():
        raise typer.BadParameter("The folder after --home is missing. Write --home DIR.")
    return Path(typed)


def choose_home(context: typer.Context, home: Path | None) -> Path | None:
    """Remember the home for later messages.

    Raises Unreachable if it does not exist and the command starts no node, because its name is probably mistyped.
    """
    terminal_text.remember_home(home)
    starts_node = context.parent is None or context.info_name in STARTS_NODE  # `poolhouse` alone opens the window
    if not starts_node and home is not None and new_home_note(home):
        raise Unreachable("home_missing", home=str(Home.at(home).root))
    return home


def new_home_note(home: Path | None) -> str:
    """Return a sentence saying that a new home is created because the one given with `--home` does not exist, or "" if
    it exists."""
    if home is None or os.path.lexists(Home.at(home).root):
        return ""
    return f"The folder {Home.at(home).root} did not exist, so a new data folder is created there."


def read_name(typed: str) -> str:
    """Parse the name of a machine, model or key.

    An empty name is rejected, because it usually comes from a variable that is not set in a script.
    """
    if not typed.strip():
        raise typer.BadParameter("The name is empty. Give a name.")
    return typed


def read_new_name(typed: str) -> str:
    """Parse a new name for a machine, which must be short enough for the lists on other machines."""
    if not typed.strip() or len(typed) > MAX_NAME_CHARACTERS:
        raise typer.BadParameter(
            f"A name has 1 to {MAX_NAME_CHARACTERS} visible characters. Give one such as attic-pc."
        )
    return typed


def read_folder(typed: str) -> Path:
    """Parse a folder given as an argument. An empty name is rejected, as in `read_home`."""
    if not typed.strip():
        raise typer.BadParameter("The folder is empty. Write `.` for the current one.")
    return Path(typed)


HomeOption = Annotated[
    Optional[Path],  # noqa: UP045  typer reads it at run time
    typer.Option(
        "--home",
        metavar="DIR",
        help="The node's data folder.",
        show_default=False,
        parser=read_home,
        callback=choose_home,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
# the roles of a machine, in `pair` and in `roles`
HostOption = Annotated[bool, typer.Option("--host", help="May use the memory of other machines.")]
LenderOption = Annotated[bool, typer.Option("--lender", help="May lend its own memory.")]
GuestOption = Annotated[
    bool,
    typer.Option(
        "--guest",
        help=(
            "May ask the hosts but not use other machines' memory. Cannot be combined with --host. Models that it "
            "loaded elsewhere are unloaded."
        ),
    ),
]
AdminOption = Annotated[
    bool,
    typer.Option(
        "--admin", help="May also change the household. This role can be taken away only by removing the machine."
    ),
]
ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="A name listed by `poolhouse models`.", parser=read_name)
]
ContextOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--context", min=1, metavar="N", help="The maximum number of tokens in a conversation.", show_default=False
    ),
]
UsersOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--users",
        min=1,
        max=64,
        metavar="N",
        help="How many people use the model at once, each in their own conversation.",
        show_default=False,
    ),
]
SplitOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--split",
        metavar="5,6,5",
        help="The number of layers in each part: this machine's first layers, each lender's layers in order, and this "
        "machine's last layers.",
        show_default=False,
    ),
]
