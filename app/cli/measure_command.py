"""`poolhouse measure`: measures every link now and shows what it can carry."""

from __future__ import annotations

import typer

from app.cli.asking import ask_node
from app.cli.face import Face
from app.cli.options import HomeOption, JsonOption


def add_to(program: typer.Typer) -> None:
    program.command(rich_help_panel="Household")(measure)


def measure(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Measure the links to all machines now: round trips, and Mb/s each way. A few seconds each."""
    face = Face(as_json)
    face.dim("Measuring the links…")
    answer = ask_node(home, lambda node: node.post("/measure"))

    from app.cli.links_view import links_view
    from app.cli.shapes import Links, read

    face.result(answer, lambda: links_view(read(answer, Links).links))
