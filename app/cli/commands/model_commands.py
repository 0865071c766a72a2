"""The shelf: list models, import a file, delete one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from app.cli import safe_text
from app.cli.confirmation import be_sure
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption, ModelArgument, YesOption
from app.cli.output import Face
from app.core.errors import BadInput
from app.machine.paths import expanded

if TYPE_CHECKING:
    from app.api.models import Models, StarterAnswer
    from app.client import NodeClient

PANEL = "Models"


def add_to(program: typer.Typer) -> None:
    program.command(rich_help_panel=PANEL)(models)
    importing = "For example: poolhouse import ~/models/some-model.Q4_K_M.gguf"
    program.command("import", rich_help_panel=PANEL, epilog=importing)(import_file)
    program.command(rich_help_panel=PANEL, epilog="For example: poolhouse rm some-model")(rm)


def models(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the models on the shelf."""
    known, suggested = ask_node(home, _shelf)

    import msgspec
    from rich.console import Group

    from app.cli.views.models_view import models_view, offered_view, starter_view

    starter = suggested.starter if suggested else None
    content = msgspec.to_builtins(known) | (msgspec.to_builtins(suggested) if suggested else {})
    Face(as_json).result(
        content, lambda: Group(*starter_view(starter), *offered_view(known.offered), models_view(known.models))
    )


async def _shelf(node: NodeClient) -> tuple[Models, StarterAnswer | None]:
    """Return the shelf and, while it has only the built-in model, the model to start with."""
    from app.api.models import Models, StarterAnswer

    known = await node.get("/models", Models)
    if known.offered or not all(model.builtin for model in known.models):
        return known, None
    return known, await node.get("/starter", StarterAnswer)


def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A GGUF file. It is used in place.")],
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--name", help="Its name on the shelf.", show_default=False),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a model file on the shelf."""
    from app.api.models import ModelAnswer
    from app.cli.progress import shown

    path = expanded(file).absolute()  # the node has another working directory
    if path.is_dir():
        raise BadInput("file_is_folder", path=str(path))
    if not path.is_file():
        raise BadInput("file_odd" if path.exists() else "file_missing", path=str(path))
    face, body = Face(as_json), {"path": str(path), "name": name}
    with shown(face) as show:
        answer = ask_node(home, lambda node: node.work("POST", "/models", body, show, answer=ModelAnswer))

    from app.cli.views.models_view import models_view

    model = answer.model
    if name is None and _is_elsewhere(model.path, path):
        face.note(_as_known(safe_text.name(model.name), model.file_bytes, path))
    elif name is not None and name != model.name:
        face.note(f"{safe_text.name(name)} is another model; this one is called {safe_text.name(model.name)}.")
    face.result(answer, lambda: models_view([model]))


def _as_known(known: str, known_bytes: int, path: Path) -> str:
    """Say that a file was taken for a model that is here.

    Its metadata and tensors are the same; what stands behind or between them can differ.
    """
    from app.catalog.gguf.gguf_check import part_paths

    typed_bytes = sum(Path(part).stat().st_size for part in part_paths(path))
    differs = typed_bytes - known_bytes
    how = ""
    if differs:
        amount = "1 byte" if abs(differs) == 1 else f"{abs(differs):,} bytes"
        how = f" This file is {amount} {'longer' if differs > 0 else 'shorter'}, in what the model does not use."
    return f"It is a copy of the model {known}, which is on the shelf already.{how} --name adds it as a second one."


def _is_elsewhere(known: str, path: Path) -> bool:
    """Return whether the shelf has these bytes from another file. Any part of a model stands for all of it."""
    if not known:
        return False
    there = Path(known)
    return (there.parent, _whole(there)) != (path.parent, _whole(path))


def _whole(path: Path) -> str:
    return re.sub(r"-[0-9]{5}-of-[0-9]{5}$", "", path.stem)


def rm(model: ModelArgument, yes: YesOption = False, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Take a model off the shelf; only a file that was downloaded here is deleted with it."""
    from app.api.models import ModelAnswer, ModelRemoved
    from app.cli.views.amounts import size
    from app.client import segment

    face, path = Face(as_json), f"/models/{segment(model)}"
    if not yes:  # which one is meant is said, and one that is not there needs no consent
        meant = ask_node(home, lambda node: node.get(path, ModelAnswer)).model
        if meant.builtin:
            raise BadInput("model_builtin", name=meant.name)
        name = safe_text.name(meant.name)
        be_sure(face, f"Take {name} off the shelf?", yes)
    answer = ask_node(home, lambda node: node.delete(path, ModelRemoved))
    name = safe_text.name(answer.removed)
    file = "its file is deleted" if answer.file_deleted else "its file stays where it is"
    of_what = "" if answer.file_deleted else " of cut layers"
    cut = f" {size(answer.freed_bytes)}{of_what} are freed." if answer.freed_bytes else ""
    face.result(answer, lambda: f"{name} is off the shelf; {file}.{cut}")
