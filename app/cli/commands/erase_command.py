"""`poolhouse erase`: everything that Poolhouse keeps on this computer goes."""

from __future__ import annotations

import typer

from app.cli.confirmation import be_sure
from app.cli.options import HomeOption, JsonOption, YesOption
from app.cli.output import Face


def add_to(program: typer.Typer) -> None:
    program.command(rich_help_panel="Checks and figures")(erase)


def erase(yes: YesOption = False, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Delete all of Poolhouse's data here: identity, models, chats, settings, keys. Before removing the app."""
    import asyncio

    from app.core.errors import Refused
    from app.core.reasons import said, size
    from app.machine import running_node, uninstall
    from app.machine.paths import Home

    face, own = Face(as_json), Home.at(home)
    if running_node.read(own.runtime_file) is not None:
        raise Refused("erase_while_running", home=str(own.root))
    uninstall.require_own(own)  # what is nobody's needs no consent
    be_sure(face, f"Delete all models, chats, settings and keys in {own.root}? Nothing brings them back.", yes)
    done = asyncio.run(uninstall.erase(own))
    left = [said(reason) for reason in done.left]
    text = "\n".join([f"{size(done.n_bytes)} deleted in {own.root}.", *left])
    face.result({"erased": str(own.root), "bytes": done.n_bytes, "left": left}, lambda: text)
