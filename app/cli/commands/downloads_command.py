"""The command `poolhouse downloads`, which lists the downloads with their sum, and pauses, resumes and orders them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption
from app.cli.output import Output
from app.core.errors import BadInput

if TYPE_CHECKING:
    from app.api.downloads import Download, Downloads
    from app.client import NodeClient


def downloads(
    model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help="The name or ID of a download. Without it, the command applies to all of them.", show_default=False
        ),
    ] = None,
    pause: Annotated[bool, typer.Option("--pause", help="Pause the download, or all of them.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the download, or all of them.")] = False,
    first: Annotated[bool, typer.Option("--first", help="Move the download to the beginning of the list.")] = False,
    last: Annotated[bool, typer.Option("--last", help="Move the download to the end of the list.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the downloads in the order in which they run, and pause, resume or reorder them."""
    from app.cli.views.downloads_view import downloads_view

    if sum((pause, resume, first, last)) > 1:
        raise typer.BadParameter("Give one of --pause, --resume, --first and --last.")
    if model is None and (first or last):
        raise typer.BadParameter("Add the name of the download: `poolhouse downloads NAME --first`.")
    action = "pause" if pause else "resume" if resume else "first" if first else "last" if last else ""
    listed = ask_node(home, lambda node: _changed(node, model, action))
    Output(as_json).result(listed, lambda: downloads_view(listed.downloads))


async def _changed(node: NodeClient, model: str | None, action: str) -> Downloads:
    """Carry out the action and return the downloads as they are afterward."""
    from app.api.downloads import Downloads

    listed = await node.get("/downloads", Downloads)
    if model is None:
        return await node.post(f"/downloads/{action}", answer=Downloads) if action else listed
    chosen = _named(listed.downloads, model)
    if action in ("pause", "resume"):
        await node.post(f"/downloads/{chosen.id}/{action}")
    elif action:
        queue = [download.id for download in listed.downloads if download.id != chosen.id and not download.is_over]
        before = queue[0] if action == "first" and queue else None
        await node.post(f"/downloads/{chosen.id}/move", {"before": before})
    now = await node.get("/downloads", Downloads)
    return now if action else type(now)([chosen])


def _named(downloads: list[Download], name: str) -> Download:
    """Return the download with this name, ID, file or repository. Raises BadInput."""
    typed = name.casefold()
    for download in downloads:
        file = f"{download.repository}/{download.file}"
        if typed in (known.casefold() for known in (download.id, download.name, download.repository, file)):
            return download
    raise BadInput("download_unknown")
