"""The commands that place a model on the machines: `plan`, `load` and `unload`."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from app.cli import terminal_text
from app.cli.node_calls import Stopped, ask_node
from app.cli.options import ContextOption, HomeOption, JsonOption, ModelArgument, SplitOption, UsersOption, read_counts
from app.cli.output import Output
from backends.contract import KV_ANSWERS, KV_SAME_ANSWERS, KvType

if TYPE_CHECKING:
    from app.api.responses import LoadEmbedderResponse, LoadResponse
    from app.cli.progress import ShowProgress
    from app.client import NodeClient


class NumberName(StrEnum):
    """The number formats in which machines exchange hidden states."""

    AUTO = "auto"
    F16 = "f16"
    F32 = "f32"
    Q8 = "q8"


class ShapeName(StrEnum):
    """The ways to place a model on the household's machines."""

    ONE = "one"
    SPLIT = "split"
    REPLICAS = "replicas"


ShapeOption = Annotated[
    Optional[ShapeName],  # noqa: UP045
    typer.Option(
        "--shape",
        help=(
            "One machine, a split, or replicas: the whole model on every machine that can hold it (with "
            "--split, on those that the split leaves free). By default, the fastest for the number of "
            "users."
        ),
        show_default=False,
    ),
]

MovedModelArgument = Annotated[
    Optional[str],  # noqa: UP045
    typer.Argument(
        metavar="[MODEL]", help="The model whose layers move back (default: the one that answers).", show_default=False
    ),
]
OneModelArgument = Annotated[
    Optional[str],  # noqa: UP045
    typer.Argument(metavar="[MODEL]", help="Unload only this model.", show_default=False),
]

NumberOption = Annotated[
    NumberName,
    typer.Option(
        "--number",
        help=(
            "The format of the numbers sent between machines: f16, f32 (exact), or q8 (8 bits, for slow links). "
            "auto chooses f16, or q8 if a slow link makes that clearly faster."
        ),
    ),
]


KvOption = Annotated[
    KvType,
    typer.Option(
        "--kv",
        help=(
            "The number format of the context. q8_0 needs 53% of the memory, but answers may differ a "
            f"little ({KV_SAME_ANSWERS} of {KV_ANSWERS} short answers of the Guide stayed the same)."
        ),
    ),
]


ExactOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--exact/--no-exact",
        show_default=False,
        help=(
            "Use the same processor instructions on all computers, so that an answer continues with the same words if "
            "a computer is lost, and the same question gets the same answer at temperature 0. Answers that are "
            "computed together with others or that reuse an earlier turn may still differ, as may those of graphics "
            "cards. In this mode, computers with AVX-512 read prompts about half as fast. "
            "`poolhouse exact` sets the default."
        ),
    ),
]


DraftOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--draft",
        help=(
            "A draft model: a smaller model with the same tokens that guesses the next ones, so that the loaded model "
            "can check several at once. It runs on this computer. auto chooses one if it fits. Compare the speeds: on "
            "small computers, it is not faster."
        ),
    ),
]


class EngineName(StrEnum):
    """An engine on the command line."""

    LLAMACPP = "llama.cpp"
    PYTORCH = "pytorch"
    MLX = "mlx"


EngineOption = Annotated[
    Optional[EngineName],  # noqa: UP045
    typer.Option(
        "--engine",
        show_default=False,
        help=(
            "The engine for this model on all computers that have it, even where it is slower. Otherwise, each "
            "computer uses what `poolhouse engine prefer` says there."
        ),
    ),
]


BesideOption = Annotated[bool, typer.Option("--beside", help="Keep the loaded models; by default they are replaced.")]


def _load_request(  # noqa: PLR0913  one for each option
    model: str,
    context: int | None,
    users: int | None,
    split: str | None,
    kv: KvType,
    shape: ShapeName | None,
    number: NumberName,
    *,
    exact: bool | None,
    engine: EngineName | None,
    beside: bool,
) -> dict[str, Any]:
    """Return the body of a request to plan or load a model."""
    runs = read_counts(split) if split is not None else None
    chosen = shape.value if shape else None
    return {
        "model": model,
        "context": context,
        "users": users,
        "split": runs,
        "kv": kv.value,
        "shape": chosen,
        "number": number.value,
        "exact": exact,
        "engine": engine.value.replace(".", "") if engine else "",
        "beside": beside,
    }


def plan(  # noqa: PLR0913  one for each option
    model: ModelArgument,
    context: ContextOption = None,
    users: UsersOption = None,
    split: SplitOption = None,
    number: NumberOption = NumberName.AUTO,
    kv: KvOption = KvType.F16,
    shape: ShapeOption = None,
    exact: ExactOption = None,
    engine: EngineOption = None,
    beside: BesideOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show on which machines the layers would be placed, without loading anything."""
    from app.api.plans import Plan
    from app.cli.progress import show_progress

    out = Output(as_json)
    body = _load_request(model, context, users, split, kv, shape, number, exact=exact, engine=engine, beside=beside)
    with show_progress(out) as show:
        answer = ask_node(home, lambda node: node.work("POST", "/plan", body, show, answer=Plan))

    from app.cli.views.placement_view import plan_view

    _show_full_name(out, model, answer.model)
    out.result(answer, lambda: plan_view(answer))


def load(  # noqa: PLR0913  one for each option
    model: ModelArgument,
    split: SplitOption = None,
    context: ContextOption = None,
    users: UsersOption = None,
    number: NumberOption = NumberName.AUTO,
    kv: KvOption = KvType.F16,
    shape: ShapeOption = None,
    exact: ExactOption = None,
    engine: EngineOption = None,
    draft: DraftOption = None,
    beside: BesideOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load a model onto the machines."""
    from app.cli.progress import show_progress

    out = Output(as_json)
    body = _load_request(model, context, users, split, kv, shape, number, exact=exact, engine=engine, beside=beside)
    body |= {"draft": draft} if draft else {}
    with show_progress(out) as show:
        answer = ask_node(home, lambda node: _load(node, body, show))

    from app.cli.views.placement_view import loaded_line, plan_view

    _show_full_name(out, model, answer.loaded.model)
    out.result(answer, lambda: plan_view(answer.loaded))
    if not as_json:
        out.note_dim(loaded_line(answer.loaded))


async def _load(node: NodeClient, body: dict[str, Any], show: ShowProgress) -> LoadResponse | LoadEmbedderResponse:
    """Load a model. Ctrl-C makes the node stop loading, and raises Stopped."""
    from app.api.responses import LoadEmbedderResponse, LoadResponse
    from app.decoding import convert

    try:
        answer = await node.work("POST", "/load", body, show)
    except asyncio.CancelledError:
        raise Stopped("load_given_up", model=body["model"]) from None
    return convert(answer, LoadEmbedderResponse) if "wished" in answer["loaded"] else convert(answer, LoadResponse)


def _show_full_name(out: Output, typed: str, name: str) -> None:
    """Show the full name of the model if the typed name is an abbreviation."""
    if not out.as_json and typed.casefold() != name.casefold():
        out.show(f"{terminal_text.line(typed)} refers to {terminal_text.name(name)}.")


def undo(model: MovedModelArgument = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Move a model's layers back to where they were before they last moved by themselves, and keep them there.

    Run it on the machine that loaded the model.
    """
    from app.api.models import UndoMoveResponse

    answer = ask_node(home, lambda node: node.post("/undo-move", {"model": model}, answer=UndoMoveResponse))

    def said() -> str:
        name = terminal_text.name(answer.model)
        return f"The layers of {name} move back as soon as no answer needs them, and stay until it is loaded again."

    Output(as_json).result({"model": answer.model}, said)


def unload(model: OneModelArgument = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Unload a model that this machine has loaded, or all of them, and free its memory on every machine."""
    from app.api.models import UnloadResponse

    answer = ask_node(home, lambda node: node.post("/unload", {"model": model}, answer=UnloadResponse))
    unloaded = [name for name in (answer.unloaded, *answer.also) if name]
    sentence = " ".join(f"{terminal_text.name(name)} is unloaded." for name in unloaded)
    nothing = f"{terminal_text.name(model)} was not loaded." if model else "No model was loaded."
    Output(as_json).result(answer, lambda: sentence or nothing)
