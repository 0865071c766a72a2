"""Get a model: from the catalogue by its name, or from the hub by its repository."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from app.cli import hints, safe_text
from app.cli.conversation import ask_node
from app.cli.interrupted import Stopped
from app.cli.options import HomeOption, JsonOption
from app.cli.output import Face
from app.core.errors import AppError, BadInput, Unreachable

if TYPE_CHECKING:
    from app.cli.progress import Show
    from app.client import NodeClient

PANEL = "Models"
LOOK_SECONDS = 0.3
STEPS = {"waiting": "waiting", "starting": "starting", "checking": "checking"}  # by the download's state
SILENT_SECONDS = 4.0  # without a word from the hub; then it is said that it is waited for

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file on the hub; `revision` is None for the catalogue's own or the newest."""

    repository: str
    file: str
    revision: str | None = None
    sha256: str | None = None


def add_to(program: typer.Typer) -> None:
    program.command(rich_help_panel=PANEL)(pull)


def pull(
    model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help="A name of the catalogue, or OWNER/REPOSITORY of the hub; `:Q8_0` behind it chooses a version. "
            "Without it, the catalogue is listed.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--name", help="Its name on the shelf.", show_default=False),
    ] = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Give the download up and delete what is here of it.")
    ] = False,
    source: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--from",
            metavar="MACHINE",
            show_default=False,
            help="Copy it from this machine of the household. Without it, whichever has it gives it.",
        ),
    ] = None,
    online: Annotated[bool, typer.Option("--online", help="From the internet, even where a machine has it.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Download a model; Ctrl-C pauses it, the same command goes on."""
    face = Face(as_json)
    if online and source is not None:
        raise typer.BadParameter("Give --from or --online, not both.")
    if model is None:
        if cancel or name is not None:
            raise typer.BadParameter("Name the model too: `poolhouse pull MODEL`.")
        _list(face, home)
    elif cancel:
        answer = ask_node(home, lambda node: _cancel(node, model))
        face.result(answer, lambda: _cancelled(answer))
    else:
        _follow(face, home, (model, name), (source, online))


def _follow(face: Face, home: Path | None, what: tuple[str, str | None], where: tuple[str | None, bool]) -> None:
    """See `_pull`."""
    from app.cli.progress import shown
    from app.cli.shapes import Model, read
    from app.cli.views.models_view import models_view

    with shown(face) as show:
        answer = ask_node(home, lambda node: _pull(node, what, where, show, face))
    face.result(answer, lambda: models_view([read(answer["model"], Model)]))


async def _pull(
    node: NodeClient, what: tuple[str, str | None], where: tuple[str | None, bool], show: Show, face: Face
) -> Json:
    """what: the model, and its name on the shelf. where: the machine that shall give it, and whether none shall."""
    from app.client import segment

    model, name = what
    with _patience(face):
        wanted = await _wanted(node, model)
    order = {"repository": wanted.repository, "file": wanted.file, "revision": wanted.revision, "name": name}
    if machine := await _given_by(node, wanted, where, face):
        order |= {"machine": machine, "sha256": wanted.sha256}
    begun = (await node.post("/downloads", order))["download"]
    try:
        done = await _followed(node, begun["id"], show, face)
    except asyncio.CancelledError:
        await node.post(f"/downloads/{segment(begun['id'])}/pause")
        raise Stopped("pull_paused", model=model) from None
    if name is not None and done["model"] != name:
        face.note(f"It is on the shelf already, as {safe_text.name(done['model'])}.")
    listed = (await node.get("/models"))["models"]
    found = [one for one in listed if one["name"] == done["model"]]
    return {"download": done, "model": found[0] if found else {"name": done["model"]}}


async def _given_by(node: NodeClient, wanted: Wanted, where: tuple[str | None, bool], face: Face) -> str | None:
    """The id of the machine that has this very file; None: it is downloaded. Raises BadInput."""
    source, online = where
    if online:
        return None
    asked = {"repository": wanted.repository, "file": wanted.file, "revision": wanted.revision, "sha256": wanted.sha256}
    found = (await node.post("/copies", asked))["machines"]
    if source is not None:
        found = [one for one in found if source.casefold() in (one["name"].casefold(), one["id"])]
        if not found:
            raise BadInput("copy_not_there", name=source[:64])
    if not found:
        return None
    name = safe_text.name(found[0]["name"])
    face.note(f"{name} has this very file: it is copied from there and checked by its hash. --online downloads it.")
    return str(found[0]["id"])


async def _followed(node: NodeClient, download_id: str, show: Show, face: Face) -> Json:
    """The download once it is done, shown while it goes on. Raises AppError when it failed."""
    told: set[str] = set()  # why nothing came, since something came last
    while True:
        listed = (await node.get("/downloads"))["downloads"]
        now: Json | None = next((one for one in listed if one["id"] == download_id), None)
        if now is None:
            raise BadInput("download_unknown")
        if now["state"] == "done":
            return now
        if now["state"] in ("failed", "paused"):
            raise AppError("pull_ended", why=now["reason"] or "It was paused elsewhere.")
        told = _tell_held_up(now.get("held_up"), told, face)
        step = STEPS.get("waiting" if now.get("held_up") else now["state"], "downloading")
        if step == "checking" and not now.get("sha256"):  # there is nothing to check it against
            step = "hashing"
        if now["total_bytes"]:
            progress = {"done": now["done_bytes"], "total": now["total_bytes"], "unit": "bytes"}
            show({"step": step, "machine": None, **progress})
        await asyncio.sleep(LOOK_SECONDS)


@contextmanager
def _patience(face: Face) -> Iterator[None]:
    """Says what it waits for, and what ends that, where the hub is slow to tell of a repository."""
    words = "There is no answer yet from where models come from. Poolhouse goes on trying; Ctrl-C ends that."
    slow = asyncio.get_running_loop().call_later(SILENT_SECONDS, face.note, words)
    try:
        yield
    finally:
        slow.cancel()


def _tell_held_up(why: str | None, told: set[str], face: Face) -> set[str]:
    """Say once why nothing comes, and that it goes on trying."""
    if why is None:
        return set()
    if why not in told:
        face.note(f"{why} Poolhouse goes on trying; Ctrl-C pauses the download.")
    return told | {why}


async def _wanted(node: NodeClient, model: str) -> Wanted:
    """What a person means. Raises BadInput."""
    if "/" not in model:
        from app.catalog.catalogue import shipped

        offer, one = shipped().named(model)
        return Wanted(offer.repository, one.file)
    owner, repository, *file = model.split("/", 2)
    if file:
        return Wanted(f"{owner}/{repository}", file[0])
    repository, _, version = repository.partition(":")
    return await _on_the_hub(node, f"{owner}/{repository}", version)


async def _on_the_hub(node: NodeClient, repository: str, version: str) -> Wanted:
    from app.client import segment

    listing = await node.get(f"/search/files?repo={segment(repository)}")
    files = [one for one in listing["files"] if one["usable"]]
    for one in files:
        chosen = (one["quantisation"] or "").casefold() == version.casefold()
        if chosen if version else one["recommended"]:
            return Wanted(repository, one["file"], listing["revision"], one.get("sha256"))
    there = ", ".join(str(one["quantisation"] or one["file"]) for one in files) or "none"
    raise BadInput("catalogue_no_version", name=repository, there=there)


async def _cancel(node: NodeClient, model: str) -> Json:
    from app.client import segment

    listed = (await node.get("/downloads"))["downloads"]
    plain = model.casefold()
    for one in listed:
        names = (one["id"], one["name"], one["repository"], f"{one['repository']}/{one['file']}")
        if plain in (name.casefold() for name in names):
            return await node.delete(f"/downloads/{segment(one['id'])}")
    wanted = await _wanted(node, model)
    for one in listed:
        if (one["repository"], one["file"]) == (wanted.repository, wanted.file):
            return await node.delete(f"/downloads/{segment(one['id'])}")
    raise BadInput("download_unknown")


def _cancelled(answer: Json) -> str:
    from app.cli.views.amounts import size

    freed = int(answer.get("freed_bytes") or 0)
    return "The download is off the list." + (f" {size(freed)} are freed." if freed else "")


def _list(face: Face, home: Path | None) -> None:
    import msgspec

    from app.catalog.catalogue import shipped

    known = shipped()
    answer = _starter(home)
    starter = answer["starter"] if answer else None
    listed = msgspec.to_builtins(known) | {"starter": starter}
    none_fits = answer is not None and starter is None
    face.result(listed, lambda: _table(known.models, starter, none_fits=none_fits))


def _starter(home: Path | None) -> Json | None:
    """The node's answer. Only one that runs knows what its household lends; the catalogue is listed without it too."""
    try:
        return ask_node(home, lambda node: node.get("/starter"))
    except Unreachable:
        return None


NONE_FITS = (
    "None of these fits with room to spare in what this household lends now. End large programs, lend more or "
    "raise a limit (`poolhouse lend`), or add a computer."
)


def _table(offers: Any, starter: Json | None, *, none_fits: bool) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from app.cli.views.amounts import size
    from app.cli.views.models_view import starter_view

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("Name", overflow="fold")
    table.add_column("Size", justify="right", overflow="fold")
    table.add_column("Licence", overflow="fold")
    table.add_column("Good at")
    for offer in offers:
        best = _best(offer)
        n_bytes = size(best.size_bytes) if best.size_bytes else "not known"
        table.add_row(offer.id, n_bytes, safe_text.name(offer.licence), ", ".join(offer.good_at))
    notes = []
    if whole := ", ".join(one.id for one in offers if not one.splits):
        notes.append(f"Whole only, on one machine: {whole}.")
    if unknown := ", ".join(one.id for one in offers if _best(one).whole_hash is None):
        notes.append(f"Hash not known yet; the first download pins it: {unknown}.")
    notes.append("`poolhouse pull NAME` gets one.")
    below = [hints.text(one, "dim") for one in notes]
    first = [hints.text(NONE_FITS), Text()] if none_fits else starter_view(starter)
    return Group(*first, table, *below)


def _best(offer: Any) -> Any:
    return next(one for one in offer.files if one.recommended)
