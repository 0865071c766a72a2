"""`poolhouse status`: machines, links, lending, the loaded model and its placement."""

from __future__ import annotations

import typer

from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption
from app.cli.output import Face


def add_to(program: typer.Typer) -> None:
    program.command(rich_help_panel="Every day")(status)


def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show the machines, what they lend, and which layers they hold."""
    from app.api.snapshot import Snapshot

    snapshot = ask_node(home, lambda node: node.get("/status", Snapshot))

    from app.cli.views.status_view import status_view

    Face(as_json).result(snapshot, lambda: status_view(snapshot))
