"""The command `poolhouse pull`, which gets a model from the catalog, the hub or a machine of the household."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from app.cli import terminal_text
from app.cli.node_calls import Stopped, ask_node
from app.cli.options import HomeOption, JsonOption
from app.cli.output import Output
from app.core.errors import AppError, BadInput, Reason, Unreachable
from app.core.reasons import size

if TYPE_CHECKING:
    from app.api.downloads import Download, RemoveDownloadResponse
    from app.api.models import ShelfModel, Starter, StarterResponse
    from app.cli.progress import ShowProgress
    from app.client import NodeClient

POLL_SECONDS = 0.3
# download state -> step; any other state is "downloading"
STEPS = {"waiting": "waiting", "starting": "starting", "checking": "checking"}
SILENT_SECONDS = 4.0  # how long the hub may be silent before the user is told


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file on the hub. If `revision` is None, the catalog's revision is used or, for files that are not in the
    catalog, the newest one."""

    repository: str
    file: str
    revision: str | None = None
    sha256: str | None = None


def pull(
    model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help=(
                "A name in the catalog, or OWNER/REPOSITORY on the hub; a suffix such as `:Q8_0` chooses "
                "a version, and `:mmproj` the file that lets the model see. Without it, the catalog is listed."
            ),
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--name", help="The name of the model here.", show_default=False),
    ] = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the download and delete its partial file.")] = False,
    source: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--from",
            metavar="MACHINE",
            show_default=False,
            help="Copy the model from this machine; by default, from any machine of the household that has it.",
        ),
    ] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Download the model from the internet even if another machine has it.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Download a model. Ctrl-C pauses the download, and the same command resumes it."""
    out = Output(as_json)
    if online and source is not None:
        raise typer.BadParameter("Give --from or --online, not both.")
    if model is None:
        if cancel or name is not None:
            raise typer.BadParameter("Add the name of the model: `poolhouse pull MODEL`.")
        _list_catalog(out, home)
    elif cancel:
        answer = ask_node(home, lambda node: _cancel(node, model))
        out.result(answer, lambda: _canceled(answer))
    else:
        _follow(out, home, (model, name), (source, online))


def _follow(out: Output, home: Path | None, choice: tuple[str, str | None], source: tuple[str | None, bool]) -> None:
    """Pull the model and show it once it is complete. The arguments are those of `_pull`."""
    import msgspec

    from app.cli.progress import show_progress
    from app.cli.views.models_view import models_view

    with show_progress(out) as show:
        download, model = ask_node(home, lambda node: _pull(node, choice, source, show, out))
    content = {"download": msgspec.to_builtins(download), "model": msgspec.to_builtins(model)}
    out.result(content, lambda: models_view([model]))


async def _pull(
    node: NodeClient, choice: tuple[str, str | None], source: tuple[str | None, bool], show: ShowProgress, out: Output
) -> tuple[Download, ShelfModel]:
    """Download or copy a model. Return the download and the model on the shelf.

    choice: the model, and its name on the shelf.
    source: the machine to copy from, and whether to avoid copying.
    """
    from app.api.downloads import DownloadResponse
    from app.api.models import Models, ShelfModel
    from app.client import segment

    model, name = choice
    with _slow_hub_note(out):
        version = await _find_file(node, model)
    order = {"repository": version.repository, "file": version.file, "revision": version.revision, "name": name}
    if machine := await _source_machine(node, version, source, out):
        order |= {"machine": machine, "sha256": version.sha256}
    started = (await node.post("/downloads", order, answer=DownloadResponse)).download
    try:
        finished = await _wait_for_download(node, started.id, show, out)
    except asyncio.CancelledError:
        await node.post(f"/downloads/{segment(started.id)}/pause")
        raise Stopped("pull_paused", model=model) from None
    called = finished.model or ""
    if name is not None and called != name:
        out.note(f"It is already on this computer, as {terminal_text.name(called)}.")
    shelf = (await node.get("/models", Models)).models
    return finished, next((entry for entry in shelf if entry.name == called), ShelfModel(name=called))


async def _source_machine(
    node: NodeClient, version: HubFile, source: tuple[str | None, bool], out: Output
) -> str | None:
    """Return the id of a machine that has this file, or None to download it. Raises BadInput."""
    chosen, online = source
    if online:
        return None
    from app.api.responses import MachineRefs

    body = {
        "repository": version.repository,
        "file": version.file,
        "revision": version.revision,
        "sha256": version.sha256,
    }
    holders = (await node.post("/copies", body, answer=MachineRefs)).machines
    if chosen is not None:
        holders = [machine for machine in holders if chosen.casefold() in (machine.name.casefold(), machine.id)]
        if not holders:
            raise BadInput("copy_not_there", name=chosen[:64])
    if not holders:
        return None
    name = terminal_text.name(holders[0].name)
    out.note(
        f"{name} has this file, so it is copied from there and its checksum is verified. --online downloads it instead."
    )
    return holders[0].id


async def _wait_for_download(node: NodeClient, download_id: str, show: ShowProgress, out: Output) -> Download:
    """Show the download's progress until it is complete, and return it. Raises AppError if it fails."""
    from app.api.downloads import Downloads
    from app.api.plans import Progress

    reported: set[str] = set()  # reasons reported since bytes last arrived
    while True:
        downloads = (await node.get("/downloads", Downloads)).downloads
        current = next((download for download in downloads if download.id == download_id), None)
        if current is None:
            raise BadInput("download_unknown")
        if current.state == "done":
            return current
        if current.state in ("failed", "paused"):
            raise AppError("pull_ended", why=current.reason or "It was paused in the window or by another command.")
        reported = _note_held_up(current.held_up, reported, out)
        step = STEPS.get("waiting" if current.held_up else current.state, "downloading")
        # without a known hash there is nothing to check, so the hash is computed
        if step == "checking" and not current.sha256:
            step = "hashing"
        if current.total_bytes:
            show(Progress(step, None, current.done_bytes or 0, current.total_bytes, "bytes"))
        await asyncio.sleep(POLL_SECONDS)


@contextmanager
def _slow_hub_note(out: Output) -> Iterator[None]:
    """Tell the user what the command is waiting for if the hub is slow to respond."""
    words = "The model hub has not answered yet. Poolhouse keeps trying; Ctrl-C stops."
    slow = asyncio.get_running_loop().call_later(SILENT_SECONDS, out.note, words)
    try:
        yield
    finally:
        slow.cancel()


def _note_held_up(why: str | None, reported: set[str], out: Output) -> set[str]:
    """Report once why the download has stalled. Return all reasons reported so far."""
    if why is None:
        return set()
    if why not in reported:
        out.note(f"{why} Poolhouse keeps trying; Ctrl-C pauses the download.")
    return reported | {why}


PROJECTOR_VERSION = ":mmproj"  # after the name of a model: the file that lets it see


async def _find_file(node: NodeClient, model: str) -> HubFile:
    """Return the file that `model` refers to. Raises BadInput."""
    if "/" not in model:
        from app.catalog.model_catalog import load_catalog

        named, is_projector, _ = model.partition(PROJECTOR_VERSION)
        offer, version_file = load_catalog().find_by_name(named)
        if is_projector:
            return await _find_on_hub(node, offer.repository, PROJECTOR_VERSION[1:])
        return HubFile(offer.repository, version_file.file)
    owner, repository, *file = model.split("/", 2)
    if file:
        return HubFile(f"{owner}/{repository}", file[0])
    repository, _, version = repository.partition(":")
    return await _find_on_hub(node, f"{owner}/{repository}", version)


async def _find_on_hub(node: NodeClient, repository: str, version: str) -> HubFile:
    from app.api.models import HubListing
    from app.client import segment

    listing = await node.get(f"/search/files?repo={segment(repository)}", HubListing)
    files = [file for file in listing.files if file.usable]
    if version.casefold() == PROJECTOR_VERSION[1:] and listing.projectors:
        projector = listing.projectors[0]
        if not any(file.on_shelf for file in listing.files):
            raise BadInput("projector_without_model", name=repository)
        return HubFile(repository, projector.file, listing.revision, projector.sha256)
    for file in files:
        chosen = (file.quantization or "").casefold() == version.casefold()
        if chosen if version else file.recommended:
            return HubFile(repository, file.file, listing.revision, file.sha256)
    available = ", ".join(file.quantization or file.file for file in files) or Reason("none")
    raise BadInput("catalog_no_version", name=repository, there=available)


async def _cancel(node: NodeClient, model: str) -> RemoveDownloadResponse:
    from app.api.downloads import Downloads, RemoveDownloadResponse
    from app.client import segment

    downloads, typed = (await node.get("/downloads", Downloads)).downloads, model.casefold()

    def is_named(download: Download) -> bool:
        file = f"{download.repository}/{download.file}"
        return typed in (name.casefold() for name in (download.id, download.name, download.repository, file))

    chosen = next(filter(is_named, downloads), None)
    if chosen is None:
        version = await _find_file(node, model)
        same = (each for each in downloads if (each.repository, each.file) == (version.repository, version.file))
        chosen = next(same, None)
    if chosen is None:
        raise BadInput("download_unknown")
    return await node.delete(f"/downloads/{segment(chosen.id)}", RemoveDownloadResponse)


def _canceled(answer: RemoveDownloadResponse) -> str:
    freed = answer.freed_bytes
    return "The download was canceled." + (f" This freed {size(freed)}." if freed else "")


def _list_catalog(out: Output, home: Path | None) -> None:
    import msgspec

    from app.catalog.model_catalog import load_catalog

    catalog = load_catalog()
    answer = _starter(home)
    starter = answer.starter if answer else None
    listed = msgspec.to_builtins(catalog) | {"starter": msgspec.to_builtins(starter)}
    none_fits = answer is not None and starter is None
    out.result(listed, lambda: _table(catalog.models, starter, none_fits=none_fits))


def _starter(home: Path | None) -> StarterResponse | None:
    """Return the model that the node recommends, or None if no node is running.

    The recommendation depends on the memory that the household lends.
    """
    from app.api.models import StarterResponse

    try:
        return ask_node(home, lambda node: node.get("/starter", StarterResponse))
    except Unreachable:
        return None


NONE_FITS = (
    "None of these fits comfortably in the memory that is free for models now. Close large "
    "programs, lend more or raise a limit (`poolhouse lend`), or add a computer."
)


def _table(offers: Any, starter: Starter | None, *, none_fits: bool) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from app.cli.views.models_view import starter_view

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("Name", overflow="fold")
    table.add_column("Size", justify="right", overflow="fold")
    table.add_column("License", overflow="fold")
    table.add_column("Good at")
    for offer in offers:
        best = _recommended(offer)
        n_bytes = size(best.size_bytes) if best.size_bytes else "unknown"
        table.add_row(offer.id, n_bytes, terminal_text.name(offer.license), ", ".join(offer.good_at))
    notes = []
    if unsplittable := ", ".join(entry.id for entry in offers if not entry.splits):
        notes.append(f"Cannot be split, so each needs one machine that can hold it: {unsplittable}.")
    if unknown := ", ".join(entry.id for entry in offers if _recommended(entry).whole_hash is None):
        notes.append(f"Checksum not known yet, so the first download records it: {unknown}.")
    notes.append("`poolhouse pull NAME` downloads one.")
    below = [terminal_text.command_text(note, "dim") for note in notes]
    first = [terminal_text.command_text(NONE_FITS), Text()] if none_fits else starter_view(starter)
    return Group(*first, table, *below)


def _recommended(offer: Any) -> Any:
    return next(file for file in offer.files if file.recommended)
