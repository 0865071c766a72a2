"""The commands that manage this computer's models: the shelf, the models folder, and sharing with the household."""

from __future__ import annotations

import asyncio
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from app.cli import terminal_text
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption, ModelArgument, YesOption, read_folder
from app.cli.output import Output
from app.core.errors import AppError, BadInput
from app.core.reasons import size
from app.machine.paths import expand_user

if TYPE_CHECKING:
    from app.api.computer import Settings
    from app.api.downloads import ModelsFolderRoom
    from app.api.models import Models, StarterResponse
    from app.cli.progress import ShowProgress
    from app.client import NodeClient


def models(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the models on this computer, and those that other machines of the household have loaded."""
    shelf, suggested = ask_node(home, _shelf)

    import msgspec
    from rich.console import Group

    from app.cli.views.models_view import models_view, offered_view, shared_view, starter_view

    starter = suggested.starter if suggested else None
    content = msgspec.to_builtins(shelf) | (msgspec.to_builtins(suggested) if suggested else {})
    elsewhere = [] if shelf.offered else shared_view(shelf.shared)
    Output(as_json).result(
        content,
        lambda: Group(*starter_view(starter), *offered_view(shelf.offered), *elsewhere, models_view(shelf.models)),
    )


async def _shelf(node: NodeClient) -> tuple[Models, StarterResponse | None]:
    """Return the shelf and, if it contains only the built-in model, a recommended first model."""
    from app.api.models import Models, StarterResponse

    shelf = await node.get("/models", Models)
    if shelf.offered or not all(model.builtin for model in shelf.models):
        return shelf, None
    return shelf, await node.get("/starter", StarterResponse)


def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A GGUF file, which is used where it is.")],
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--name", help="The name of the model here.", show_default=False),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a model file to this computer's models."""
    from app.api.models import ModelResponse
    from app.cli.progress import show_progress

    path = expand_user(file).absolute()  # the node has a different working directory
    if path.is_dir():
        raise BadInput("file_is_folder", path=str(path))
    if not path.is_file():
        raise BadInput("file_odd" if path.exists() else "file_missing", path=str(path))
    out, body = Output(as_json), {"path": str(path), "name": name}
    with show_progress(out) as show:
        answer = ask_node(home, lambda node: node.work("POST", "/models", body, show, answer=ModelResponse))

    from app.cli.views.models_view import models_view

    model = answer.model
    if name is None and _is_elsewhere(model.path, path):
        out.note(_same_model_note(terminal_text.name(model.name), model.file_bytes, path))
    elif name is not None and name != model.name:
        out.note(f"{terminal_text.name(name)} is another model; this one is called {terminal_text.name(model.name)}.")
    out.result(answer, lambda: models_view([model]))


def _same_model_note(name: str, known_bytes: int, path: Path) -> str:
    """Explain that the file is a copy of a model that is already on the shelf.

    Its metadata and tensors are identical, but any bytes after or between them may differ.
    """
    from app.catalog.gguf.gguf_file import part_paths

    typed_bytes = sum(Path(part).stat().st_size for part in part_paths(path))
    differs = typed_bytes - known_bytes
    detail = ""
    if differs:
        amount = "1 byte" if abs(differs) == 1 else f"{abs(differs):,} bytes"
        detail = (
            f" This file is {amount} {('longer' if differs > 0 else 'shorter')}, in a part that the model does not use."
        )
    known = f"It is a copy of the model {name}, which is already on this computer."
    return f"{known}{detail} --name adds it as a second model."


def _is_elsewhere(known_file: str, path: Path) -> bool:
    """Return whether the shelf has this model from a different file. The parts of a split model count as one file."""
    if not known_file:
        return False
    known_path = Path(known_file)
    return (known_path.parent, _without_part(known_path)) != (path.parent, _without_part(path))


def _without_part(path: Path) -> str:
    return re.sub(r"-[0-9]{5}-of-[0-9]{5}$", "", path.stem)


def rm(model: ModelArgument, yes: YesOption = False, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Remove a model from this computer. Its file is deleted only if it was downloaded here."""
    from app.api.models import ModelResponse, RemoveModelResponse
    from app.client import segment

    out, path = Output(as_json), f"/models/{segment(model)}"
    if not yes:  # The question shows the full name, and is asked only if the model exists.
        entry = ask_node(home, lambda node: node.get(path, ModelResponse)).model
        if entry.builtin:
            raise BadInput("model_builtin", name=entry.name)
        name = terminal_text.name(entry.name)
        out.confirm(f"Remove {name} from this computer?", yes)
    answer = ask_node(home, lambda node: node.delete(path, RemoveModelResponse))
    name = terminal_text.name(answer.removed)
    file = "its file was deleted" if answer.file_deleted else "its file stays where it is"
    of_what = "" if answer.file_deleted else " of cut layers"
    cut = f" This freed {size(answer.freed_bytes)}{of_what}." if answer.freed_bytes else ""
    out.result(answer, lambda: f"{name} was removed; {file}.{cut}")


POLL_SECONDS = 0.3


def folder(
    path: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Argument(
            metavar="[FOLDER]",
            show_default=False,
            parser=read_folder,
            help=(
                "The folder for your models. If it is not empty, they are kept in a folder `Poolhouse models` inside "
                "it. Without this argument, the current folder is shown."
            ),
        ),
    ] = None,
    move: Annotated[
        bool, typer.Option("--move", help="Move the models from other folders there; Ctrl-C stops the move.")
    ] = False,
    create: Annotated[bool, typer.Option("--create", help="Create the folder if it does not exist.")] = False,
    default: Annotated[bool, typer.Option("--default", help="Keep models in Poolhouse's own folder again.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where models are kept, or choose another folder, for example on a larger disk."""
    if default and path is not None:
        raise typer.BadParameter("Give a folder or --default, not both.")
    if create and path is None:
        raise typer.BadParameter("--create needs the folder to create.")
    out, place = Output(as_json), None
    if path is not None:
        place = expand_user(path).absolute()  # the node has a different working directory
        create = _may_create(out, place, create)
    chosen = "" if default else None if place is None else str(place)

    from app.cli.progress import show_progress

    with show_progress(out) as show:
        answer = ask_node(home, lambda node: _choose_folder(node, chosen, (move, create), show))
    out.result(answer, lambda: "\n".join(_folder_lines(answer, place)))


def _may_create(out: Output, place: Path, create: bool) -> bool:
    """Return whether to create the folder.

    Asks the user, because the name may be mistyped. Raises BadInput if the user cannot be asked.
    """
    if create or place.exists():
        return create  # the node reports what is wrong with it
    missing = place
    while not missing.parent.is_dir():
        missing = missing.parent
    if missing != place and not missing.exists():
        raise BadInput("models_folder_nested", folder=str(missing))
    if not out.can_ask:
        raise BadInput("models_folder_new", folder=str(place))
    typer.confirm(f"There is no folder {terminal_text.line(str(place))}. Create it?", abort=True)
    return True


async def _choose_folder(
    node: NodeClient, chosen: str | None, options: tuple[bool, bool], show: ShowProgress
) -> ModelsFolderRoom:
    """Choose the folder, move the models if requested, and return the folder's state.

    options: whether to move the models, and whether to create the folder.
    """
    from app.api.downloads import ModelsFolderRoom
    from app.api.plans import Progress

    move, create = options
    if chosen is not None:
        answer = await node.post("/folder", {"path": chosen, "move": move, "new": create}, answer=ModelsFolderRoom)
    elif move:
        answer = await node.post("/folder/move", answer=ModelsFolderRoom)
    else:
        return await node.get("/folder", ModelsFolderRoom)
    try:
        while moving := answer.move:
            if moving.total_bytes:  # otherwise there is nothing to move, or the total is not known yet
                show(Progress("moving", None, moving.done_bytes, moving.total_bytes, "bytes"))
            await asyncio.sleep(POLL_SECONDS)
            answer = await node.get("/folder", ModelsFolderRoom)
    except asyncio.CancelledError:
        await node.delete("/folder/move")
        raise
    if answer.stopped:
        raise AppError("models_move_ended", why=answer.stopped)
    return answer


def _folder_lines(answer: ModelsFolderRoom, chosen: Path | None) -> list[str]:
    place = terminal_text.line(answer.folder)
    free = f" {size(answer.free_bytes)} is free there." if answer.free_bytes else ""
    lines = [f"Models are kept in {place}.{free}"]
    if chosen is not None and Path(answer.folder).parent == chosen.resolve():
        lines.append("They have their own folder inside the chosen one, which is not empty.")
    if answer.room_bytes == 0:
        lines.append("Poolhouse leaves 5 GiB free there, so nothing can be downloaded now.")
    if answer.reason:
        lines.append(terminal_text.line(answer.reason))
    for former in answer.elsewhere:
        if former.reason:
            lines.append(terminal_text.line(former.reason))
        else:
            models = f"{former.models} model{'s' if former.models != 1 else ''}"
            lines.append(
                f"Still in {terminal_text.line(former.folder)}: {models} ({size(former.bytes)}). --move moves them."
            )
    return lines


SHARED = (
    "Other hosts in this household may copy the models downloaded or imported here, and the engine packs, over your "
    "own network."
)
NOT_SHARED = "Other machines cannot copy models or engine packs from here. `poolhouse share on` allows them to."


EXACT = (
    "Models that you load here use the same processor instructions on all computers, so that an answer continues with "
    "the same words if a computer is lost. `--no-exact` makes an exception for one load."
)
NOT_EXACT = "Each computer uses its own fastest processor instructions. `poolhouse exact on` makes them all the same."


ANSWERS = (
    "Other machines in this household see the models loaded here and take turns chatting with them. Their chats are "
    "kept only on their own machines."
)
ANSWERS_NOT = "No other machine may chat with the models loaded here. `poolhouse answer on` changes that."


class Switch(StrEnum):
    """The actions of `share`, `answer` and `exact`."""

    ON = "on"
    OFF = "off"


SwitchArgument = Annotated[
    Optional[Switch],  # noqa: UP045
    typer.Argument(metavar="[on|off]", show_default=False, help="Without it, the current state is shown."),
]


def share(action: SwitchArgument = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Choose whether other machines in the household may copy models and engine packs from this one."""
    shares = ask_node(home, lambda node: _settings(node, "share_models", action)).share_models
    Output(as_json).result({"on": shares}, lambda: terminal_text.with_home(SHARED if shares else NOT_SHARED))


def answer(action: SwitchArgument = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Choose whether other machines in the household may chat with the models loaded here."""
    answers = ask_node(home, lambda node: _settings(node, "answer_household", action)).answer_household
    Output(as_json).result({"on": answers}, lambda: terminal_text.with_home(ANSWERS if answers else ANSWERS_NOT))


def exact(action: SwitchArgument = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Choose whether all computers use the same processor instructions, so that results are the same everywhere."""
    chosen = ask_node(home, lambda node: _settings(node, "exact", action)).exact
    Output(as_json).result({"on": chosen}, lambda: terminal_text.with_home(EXACT if chosen else NOT_EXACT))


async def _settings(node: NodeClient, field: str, action: Switch | None) -> Settings:
    from app.api.computer import Settings

    if action is None:
        return await node.get("/settings", Settings)
    return await node.post("/settings", {field: action is Switch.ON}, answer=Settings)
