"""`poolhouse folder`: where models are kept, another folder for them, and the move to it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from app.cli import safe_text
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption, read_folder
from app.cli.output import Face
from app.core.errors import AppError, BadInput
from app.machine.paths import expanded

if TYPE_CHECKING:
    from app.api.downloads import ModelsFolderRoom
    from app.cli.progress import Show
    from app.client import NodeClient

LOOK_SECONDS = 0.3


def add_to(program: typer.Typer) -> None:
    epilog = "For example: poolhouse folder /media/large --move"
    program.command(rich_help_panel="Models", epilog=epilog)(folder)


def folder(
    path: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Argument(
            metavar="[FOLDER]",
            show_default=False,
            parser=read_folder,
            help="Where models are kept from now on. In one that is not empty they get a folder of their own, "
            "`Poolhouse models`. Without it, the folder is shown.",
        ),
    ] = None,
    move: Annotated[
        bool, typer.Option("--move", help="Bring the models that lie elsewhere; Ctrl-C stops that.")
    ] = False,
    create: Annotated[bool, typer.Option("--create", help="Make the folder where it is not there yet.")] = False,
    default: Annotated[bool, typer.Option("--default", help="Keep models in Poolhouse's own folder again.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where models are kept, or choose another folder, on a disk with more room."""
    if default and path is not None:
        raise typer.BadParameter("Give a folder or --default, not both.")
    if create and path is None:
        raise typer.BadParameter("--create needs the folder that is to be made.")
    face, place = Face(as_json), None
    if path is not None:
        place = expanded(path).absolute()  # the node has another working directory
        create = _is_to_be_made(face, place, create)
    chosen = "" if default else None if place is None else str(place)

    from app.cli.progress import shown

    with shown(face) as show:
        answer = ask_node(home, lambda node: _done(node, chosen, (move, create), show))
    face.result(answer, lambda: "\n".join(_lines(answer, place)))


def _is_to_be_made(face: Face, place: Path, create: bool) -> bool:
    """Ask whether to make a missing folder, which may be mistyped. Raises BadInput if nobody can be asked."""
    if create or place.exists():
        return create  # the node says what is wrong with it
    lacks = place
    while not lacks.parent.is_dir():
        lacks = lacks.parent
    if lacks != place and not lacks.exists():
        raise BadInput("models_folder_nested", folder=str(lacks))
    if not face.is_live or not sys.stdin.isatty():
        raise BadInput("models_folder_new", folder=str(place))
    typer.confirm(f"There is no folder {safe_text.line(str(place))}. Make it?", abort=True)
    return True


async def _done(node: NodeClient, chosen: str | None, how: tuple[bool, bool], show: Show) -> ModelsFolderRoom:
    """how: whether to bring the models, and whether the folder is to be made."""
    from app.api.downloads import ModelsFolderRoom
    from app.api.plans import Progress

    move, create = how
    if chosen is not None:
        answer = await node.post("/folder", {"path": chosen, "move": move, "new": create}, answer=ModelsFolderRoom)
    elif move:
        answer = await node.post("/folder/move", answer=ModelsFolderRoom)
    else:
        return await node.get("/folder", ModelsFolderRoom)
    try:
        while moving := answer.move:
            if moving.total_bytes:  # else there is nothing to move, or it is not known yet
                show(Progress("moving", None, moving.done_bytes, moving.total_bytes, "bytes"))
            await asyncio.sleep(LOOK_SECONDS)
            answer = await node.get("/folder", ModelsFolderRoom)
    except asyncio.CancelledError:
        await node.delete("/folder/move")
        raise
    if answer.stopped:
        raise AppError("models_move_ended", why=answer.stopped)
    return answer


def _lines(answer: ModelsFolderRoom, chosen: Path | None) -> list[str]:
    from app.cli.views.amounts import size

    place = safe_text.line(answer.folder)
    free = f" {size(answer.free_bytes)} are free." if answer.free_bytes else ""
    lines = [f"Models are kept in {place}.{free}"]
    if chosen is not None and Path(answer.folder).parent == chosen.resolve():
        lines.append("They have a folder of their own there, as that one is not empty.")
    if answer.room_bytes == 0:
        lines.append("5 GiB stay free there, so nothing can be downloaded to it now.")
    if answer.reason:
        lines.append(safe_text.line(answer.reason))
    for former in answer.elsewhere:
        if former.reason:
            lines.append(safe_text.line(former.reason))
        else:
            models = f"{former.models} model{'s' if former.models != 1 else ''}"
            lines.append(f"{models} ({size(former.bytes)}) in {safe_text.line(former.folder)}: --move brings them.")
    return lines
