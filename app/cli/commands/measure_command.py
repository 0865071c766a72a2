"""`poolhouse measure`: measures every link now and shows what it can carry."""

from __future__ import annotations

import typer

from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption
from app.cli.output import Face


def add_to(program: typer.Typer) -> None:
    program.command(rich_help_panel="Household")(measure)


def measure(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Measure the links to all machines now: round trips, and Mb/s each way. A few seconds each."""
    face = Face(as_json)
    face.dim("Measuring the links…")
    from app.api.links import LinkReports

    reports = ask_node(home, lambda node: node.post("/measure", answer=LinkReports))

    from app.cli.views.links_view import links_view

    face.result(reports, lambda: links_view(reports.links))
