"""Asks before what cannot simply be undone; where nobody can be asked, it wants `--yes`."""

from __future__ import annotations

import sys

import typer

from app.cli.output import Face
from app.core.errors import BadInput


def be_sure(face: Face, question: str, yes: bool) -> None:
    """Returns when the person agrees, beforehand by `--yes` or now. Ends the command otherwise."""
    if yes:
        return
    if not face.is_live or not sys.stdin.isatty():
        raise BadInput("nobody_to_ask")
    typer.confirm(question, abort=True)
