"""`poolhouse doctor`: checks of this machine, each with its cause and its cure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from app.cli import hints, safe_text
from app.cli.options import HomeOption, JsonOption
from app.cli.output import Face
from app.core.errors import Reason
from app.core.reasons import said

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.core.diagnostics import Check

WORDS = {True: ("fine", "green"), False: ("problem", "red"), None: ("note", "yellow")}


def add_to(program: typer.Typer) -> None:
    program.command(rich_help_panel="Checks and figures")(doctor)


def doctor(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Check this machine; works whether a node runs or not."""
    from app.cli.doctor import all_checks
    from app.machine.paths import Home

    checks = asyncio.run(all_checks(Home.at(home)))
    well = all(check.ok is not False for check in checks)
    report = {"ok": well, "checks": [_json(check) for check in checks]}
    Face(as_json).result(report, lambda: _view(checks))
    if not well:
        raise typer.Exit(1)


def _view(checks: list[Check]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for check in checks:
        word, style = WORDS[check.ok]
        text = Text(_sentence(check.cause))
        if check.cure and check.ok is not True:
            text.append(f" {_sentence(check.cure)}", style="bold")
        table.add_row(Text(word, style=style), safe_text.name(check.name), text)
    return table


def _json(check: Check) -> dict[str, object]:
    """Return what a program reads of a finding."""
    cause, cure = (said(reason) if reason else "" for reason in (check.cause, check.cure))
    return {"name": check.name, "ok": check.ok, "cause": cause, "cure": cure}


def _sentence(reason: Reason | None) -> str:
    return safe_text.line(hints.own(said(reason))) if reason else ""
