"""`poolhouse share`: whether other machines of the household may copy the models of this one."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from app.cli import hints
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption
from app.cli.output import Face

if TYPE_CHECKING:
    from app.api.computer import Settings
    from app.client import NodeClient

ON = (
    "Machines of this household that use models may copy those that were downloaded or imported here, "
    "over your own network."
)
OFF = "No other machine copies models from here. `poolhouse share on` allows it."


class Turn(StrEnum):
    """The actions of `share`."""

    ON = "on"
    OFF = "off"


def add_to(program: typer.Typer) -> None:
    program.command(rich_help_panel="Models", epilog="For example: poolhouse share on")(share)


def share(
    turn: Annotated[
        Optional[Turn],  # noqa: UP045
        typer.Argument(metavar="[on|off]", show_default=False, help="Without it, how it is now is shown."),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose whether your other machines may copy models from this one, instead of downloading them again."""
    shares = ask_node(home, lambda node: _settings(node, turn)).share_models
    Face(as_json).result({"on": shares}, lambda: hints.own(ON if shares else OFF))


async def _settings(node: NodeClient, turn: Turn | None) -> Settings:
    from app.api.computer import Settings

    if turn is None:
        return await node.get("/settings", Settings)
    return await node.post("/settings", {"share_models": turn is Turn.ON}, answer=Settings)
