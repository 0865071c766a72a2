"""The command `poolhouse prompts`: whether, and how much of, computed prompts this computer keeps on its disk."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from app.cli import terminal_text
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption, read_size
from app.cli.output import Output
from app.core.reasons import size

if TYPE_CHECKING:
    from app.api.prompts import KeptPrompts
    from app.client import NodeClient

DEFAULT = "default"
OFF = "No computed prompts are kept on this computer. `poolhouse prompts on` keeps them."
ON = (
    "Long prompts of your household's own chats are kept on this computer after they were computed, encrypted, so that "
    "a chat about the same document starts at once, even after a restart. They use {used} of at most {limit}."
)
LOCKED = "The key for them cannot be read, so none are kept until Poolhouse is restarted and can read it."


class Action(StrEnum):
    """The actions of `prompts`."""

    ON = "on"
    OFF = "off"
    DELETE = "delete"


def prompts(
    action: Annotated[
        Optional[Action],  # noqa: UP045
        typer.Argument(
            metavar="[on|off|delete]",
            show_default=False,
            help="Without it, the current state is shown. `off` and `delete` delete all kept prompts.",
        ),
    ] = None,
    most: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--most",
            metavar="SIZE",
            show_default=False,
            help="The most disk space for kept prompts, such as 2GiB, or `default` for 5% of the free disk, "
            "at most 4 GiB.",
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose whether computed prompts are kept on this computer's disk, and delete them."""
    limit = _limit(most)
    state = ask_node(home, lambda node: _changed(node, action, limit))
    facts = {
        "on": state.on,
        "used_bytes": state.used_bytes,
        "limit_bytes": state.limit_bytes,
        "chosen_bytes": state.chosen_bytes,
    }
    Output(as_json).result(facts, lambda: terminal_text.with_home(_words(state)))


def _limit(most: str | None) -> dict[str, Any]:
    if most is None:
        return {}
    return {"most_bytes": None if most == DEFAULT else read_size(most)}


async def _changed(node: NodeClient, action: Action | None, limit: dict[str, Any]) -> KeptPrompts:
    from app.api.prompts import KeptPrompts

    changes = limit | ({"on": action is Action.ON} if action in (Action.ON, Action.OFF) else {})
    if changes:
        await node.post("/prompts", changes)
    if action is Action.DELETE:
        return await node.delete("/prompts", KeptPrompts)
    return await node.get("/prompts", KeptPrompts)


def _words(state: KeptPrompts) -> str:
    if not state.on:
        return OFF
    words = ON.format(used=size(state.used_bytes), limit=size(state.limit_bytes))
    return f"{words} {LOCKED}" if state.is_locked else words
