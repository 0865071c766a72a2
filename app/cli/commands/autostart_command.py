"""`poolhouse autostart`: whether Poolhouse starts by itself, with its tray or, without a screen, as a node."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Optional

import typer

from app.cli.options import HomeOption, JsonOption
from app.cli.output import Face

Json = dict[str, Any]
NOW = "To start it now: systemctl --user daemon-reload && systemctl --user start poolhouse"
EARLY = "To have it run while nobody is signed in: loginctl enable-linger"
RUNS = "One that runs goes on; this ends it: systemctl --user stop poolhouse"


class Turn(StrEnum):
    """The actions of `autostart`."""

    ON = "on"
    OFF = "off"


def add_to(program: typer.Typer) -> None:
    epilog = "For example: poolhouse autostart on --headless"
    program.command(rich_help_panel="Checks and figures", epilog=epilog)(autostart)


def autostart(
    turn: Annotated[
        Optional[Turn],  # noqa: UP045
        typer.Argument(metavar="[on|off]", show_default=False, help="Without it, how it is now is shown."),
    ] = None,
    headless: Annotated[
        bool, typer.Option("--headless", help="A node without a window, as a unit of systemd (Linux).")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start Poolhouse when you sign in, or stop doing so. Only what you order is changed."""
    from app.machine import autostart as system
    from app.machine.paths import Home

    entry = system.unit_here() if headless else system.entry_here()
    if turn is None:
        entry_state = system.state(entry)
    else:
        entry_state = system.choose(turn is Turn.ON, Home.at(home), entry, headless=headless)
    answer: Json = {"on": entry_state.on, "where": entry_state.where, "headless": headless}
    Face(as_json).result(answer, lambda: "\n".join(_lines(answer, turn)))


def _lines(answer: Json, turn: Turn | None) -> list[str]:
    on, where = answer["on"], answer["where"]
    if not answer["headless"]:
        words = f"Poolhouse starts at sign-in, with its tray alone ({where})."
        return [words if on else "Poolhouse does not start at sign-in."]
    if on:
        return [f"A node starts at sign-in ({where}).", EARLY, *([NOW] if turn else [])]
    return ["No node starts by itself.", *([RUNS] if turn else [])]
