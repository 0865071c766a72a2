"""The command `poolhouse demo`.

Several nodes on this computer share the built-in model and answer a question.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from app.cli import terminal_text
from app.cli.node_calls import gather_first_error
from app.cli.options import JsonOption, read_home
from app.cli.output import Output
from app.cli.terminal_text import rate, seconds
from app.core.errors import BadInput, StageLost
from app.machine.paths import expand_user

if TYPE_CHECKING:
    from app.api.models import ShelfModel
    from app.api.plans import LoadedModel
    from app.api.responses import Answer
    from app.cli.demo_nodes import DemoNode
    from app.client import NodeClient

Json = dict[str, Any]
QUESTION = "How do I add a computer?"
JOINED_SECONDS = 30
POLL_SECONDS = 0.1


def demo(
    machines: Annotated[int, typer.Option("--machines", "-m", min=1, max=16, help="How many nodes to start.")] = 3,
    question: Annotated[str, typer.Option("--question", help="The question to ask.")] = QUESTION,
    home: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--home",
            metavar="DIR",
            help="A folder for the nodes' data while the demo runs; a temporary one by default.",
            show_default=False,
            parser=read_home,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Watch nodes on this computer pair, share a model and answer a question."""
    try:
        asyncio.run(_run_demo(Output(as_json), machines, question, home))
    except asyncio.CancelledError:  # ended by a signal; Ctrl-C raises KeyboardInterrupt
        raise KeyboardInterrupt from None


async def _run_demo(out: Output, machines: int, question: str, home: Path | None) -> None:
    from app.cli.demo_nodes import DemoNodes

    out.note(f"Starting {_nodes(machines)} on this computer, {_homes(machines)}…")
    began = time.perf_counter()
    with _canceled_by_signals():
        async with DemoNodes(machines, home and expand_user(home).absolute()) as started:
            out.note(f"Ready after {time.perf_counter() - began:.1f} s: {_listed(started.nodes)}.")
            async with AsyncExitStack() as stack:
                report = await _show_demo(out, await _connect(stack, started.nodes), started.nodes, question)
    if out.as_json:
        out.json(report)
    out.note(f"Stopped {_nodes(machines)} and deleted the data of the demo.")


@contextmanager
def _canceled_by_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the demo in an orderly way, as Ctrl-C does."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handlers = [signal.signal(number, lambda *_: loop.call_soon_threadsafe(task.cancel)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)


async def _connect(stack: AsyncExitStack, nodes: list[DemoNode]) -> list[NodeClient]:
    from app.client import NodeClient
    from app.machine.paths import Home

    return [await stack.enter_async_context(NodeClient(Home.at(node.home))) for node in nodes]


async def _show_demo(out: Output, clients: list[NodeClient], nodes: list[DemoNode], question: str) -> Json:
    import msgspec
    from rich.console import Group
    from rich.text import Text

    from app.cli.commands.ask_command import answer_json, stream_answer
    from app.cli.views.placement_view import plan_view

    host = clients[0]
    for lender, node in zip(clients[1:], nodes[1:], strict=True):
        await _pair(out, host, lender, node.name)
    await _all_online(host, len(nodes))
    loaded = await _load(out, host, len(nodes))
    if not out.as_json:
        out.show(Group("", plan_view(loaded), ""))
        out.write(f"> {question}\n")
    sampling = {"temperature": 0.0, "seed": 0}
    body = {"prompt": question, "model": loaded.model, "sampling": sampling}
    answer, said_first = await stream_answer(host, out, body)
    if not out.as_json:
        out.show(Text(_figures(answer), style="dim"))
    names = [node.name for node in nodes]
    return {"machines": names, "loaded": msgspec.to_builtins(loaded), "answer": answer_json(answer, said_first)}


async def _pair(out: Output, host: NodeClient, lender: NodeClient, name: str) -> None:
    from app.api.responses import PairingCode

    window = await host.post("/pairing", {"role": "use_and_lend"}, answer=PairingCode)
    out.note(f"Pairing {name} with the code {window.code} at {window.address}…")
    typed = {"address": window.address, "code": window.code}
    # Wait for both ends: the host can pair the next machine only once this one is linked.
    await gather_first_error([host.work("GET", "/pairing/wait"), lender.post("/pairing/join", typed)])


async def _all_online(host: NodeClient, machines: int) -> None:
    """Wait until all machines are linked, which takes a moment after pairing."""
    from app.api.snapshot import Snapshot

    deadline = time.monotonic() + JOINED_SECONDS
    while True:
        machines_seen = (await host.get("/status", Snapshot)).machines.values()
        if sum(machine.online or machine.this for machine in machines_seen) >= machines:
            return
        if time.monotonic() > deadline:
            away = next(
                (machine.name for machine in machines_seen if not (machine.online or machine.this)), "A machine"
            )
            raise StageLost("demo_slow", name=terminal_text.name(away), seconds=JOINED_SECONDS)
        await asyncio.sleep(POLL_SECONDS)


async def _load(out: Output, host: NodeClient, machines: int) -> LoadedModel:
    """Load the built-in model, split over all machines."""
    from app.api.models import Models
    from app.api.responses import LoadResponse
    from app.cli.progress import show_progress

    shelf = (await host.get("/models", Models)).models
    model = next((entry for entry in shelf if entry.builtin), None)
    if model is None:
        raise BadInput("demo_without_model")
    split = even_split(model.n_layers, machines)
    out.note(f"Loading {_described(model)} onto {_machines(machines)}…")
    body = {"model": model.name, "split": split, "by_program": True}
    with show_progress(out) as show:
        return (await host.work("POST", "/load", body, show, answer=LoadResponse)).loaded


def even_split(n_layers: int, machines: int) -> list[int] | None:
    """Return the number of layers of each stage, or None for a single machine, which needs no split.

    Half of the host's layers come before the lenders' layers and half after them. Raises BadInput if a stage would
    be empty.
    """
    if machines == 1:
        return None
    if n_layers < machines + 1:
        raise BadInput("demo_too_many", layers=n_layers, most=n_layers - 1)
    share, left = divmod(n_layers, machines)
    # The host has two stages of at least one layer each, so it gets the remainder first.
    lenders = [share + (1 if number < left - 1 else 0) for number in range(machines - 1)]
    host = n_layers - sum(lenders)
    if host < 2:
        lenders[0], host = lenders[0] - 1, host + 1
    return [host - host // 2, *lenders, host // 2]


def _described(model: ShelfModel) -> str:
    return f"{terminal_text.name(model.name)} ({model.n_layers} layers)"


def _figures(answer: Answer) -> str:
    return (
        f"{len(answer.token_ids):,} tokens · first token after {seconds(answer.ttft_s)} · {rate(answer.decode_tok_s)}"
    )


def _nodes(machines: int) -> str:
    return "one node" if machines == 1 else f"{machines} nodes"


def _homes(machines: int) -> str:
    return "with its own data folder" if machines == 1 else "each with its own data folder"


def _machines(machines: int) -> str:
    return "one machine" if machines == 1 else f"{machines} machines"


def _listed(nodes: list[DemoNode]) -> str:
    return ", ".join(node.name for node in nodes)
