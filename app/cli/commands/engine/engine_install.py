"""Installing and removing PyTorch and MLX from the command line, and the lines about them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from app.cli import terminal_text
from app.cli.node_calls import Stopped, ask_node
from app.cli.output import Output
from app.core.errors import AppError, Refused
from app.core.reasons import size

if TYPE_CHECKING:
    from app.api.engine_packs import AddedEngine, AvailableEngine, EnginePacks
    from app.cli.progress import ShowProgress
    from app.client import NodeClient

INSTALLABLE = {"pytorch": "PyTorch", "mlx": "MLX"}
POLL_SECONDS = 0.3


def install(engine: str, wheels: Path | None, yes: bool, home: Path | None, as_json: bool) -> None:
    """Install an engine after saying what it takes, and use it. The exit code is 1 if it cannot be used."""
    from app.api.engine_packs import EnginePacks
    from app.cli.progress import show_progress

    out = Output(as_json)
    before = ask_node(home, lambda node: node.get("/engines", EnginePacks))
    offered = next((each for each in before.available if each.engine == engine), None)
    if offered is not None:
        out.confirm(_question(offered, wheels), yes)
    order = {"engine": engine, "wheels": str(wheels.expanduser().absolute()) if wheels else ""}
    with show_progress(out) as show:
        packs = ask_node(home, lambda node: _installed(node, order, show))
    added = packs.added
    out.result(packs, lambda: terminal_text.with_home(added_line(added) if added else ""))
    if added is None or not added.used:
        raise typer.Exit(1)


def uninstall(engine: str, yes: bool, home: Path | None, as_json: bool) -> None:
    """Delete an installed engine."""
    from app.api.engine_packs import EnginePacks

    out = Output(as_json)
    out.confirm(f"Delete {INSTALLABLE[engine]}? llama.cpp then computes what it would have computed.", yes)
    packs = ask_node(home, lambda node: node.post("/engines/uninstall", {"engine": engine}, answer=EnginePacks))
    out.result(packs, lambda: f"{INSTALLABLE[engine]} was deleted.")


def added_line(added: AddedEngine) -> str:
    """Return the line about the engine that is preferred."""
    label = terminal_text.line(added.label)
    if added.testing:
        return f"{label}: being tested."
    if not added.used:
        return f"{label}: not used. {terminal_text.line(added.problem or '')}".rstrip()
    if not added.if_faster:
        return f"{label}: preferred. llama.cpp computes the models that it cannot."
    slower = f" It was slower for {', '.join(map(terminal_text.line, added.slower))}." if added.slower else ""
    faster = f" It was faster for {', '.join(map(terminal_text.line, added.faster))}." if added.faster else ""
    return f"{label}: used where it is faster than llama.cpp, as measured when a model is planned.{faster}{slower}"


def available_lines(engines: list[AvailableEngine]) -> list[str]:
    """Return a line for each engine that is installed or can be."""
    return [_available_line(engine) for engine in engines]


def _available_line(engine: AvailableEngine) -> str:
    label = terminal_text.line(engine.label)
    if engine.preferred:
        return f"{label}: installed and preferred, {size(engine.installed_bytes)}."
    if engine.installed:
        return f"{label}: installed, {size(engine.installed_bytes)}. `poolhouse engine prefer {engine.engine}` uses it."
    return f"{label}: not installed. `poolhouse engine add {engine.engine}` downloads {size(engine.download_bytes)}."


def _question(offered: AvailableEngine, wheels: Path | None) -> str:
    label = terminal_text.line(offered.label)
    advice = f"{terminal_text.line(offered.advice)} " if offered.advice else ""
    takes = f"takes {size(offered.installed_bytes)} on the disk"
    if wheels is not None:
        return f"{advice}{label} {takes}. Install it from {terminal_text.line(str(wheels))} and use it?"
    return f"{advice}{label} is a download of {size(offered.download_bytes)} and {takes}. Download it and use it?"


async def _installed(node: NodeClient, order: dict[str, str], show: ShowProgress) -> EnginePacks:
    """Install an engine while showing the progress. Raises the error if it fails."""
    from app.api.engine_packs import EnginePacks
    from app.api.plans import Progress

    try:
        packs = await node.post("/engines/install", order, answer=EnginePacks)
        while packs.installation is not None and not packs.installation.is_over:
            now = packs.installation
            if now.state == "downloading":
                show(Progress("downloading", None, now.done_bytes, now.total_bytes, "bytes"))
            else:
                show(Progress("unpacking" if now.state == "unpacking" else "testing_engine", None, 0, 1, ""))
            await asyncio.sleep(POLL_SECONDS)
            packs = await node.get("/engines", EnginePacks)
    except asyncio.CancelledError:
        await node.post("/engines/install/cancel", answer=EnginePacks)
        raise
    ended = packs.installation
    if ended is None:  # the node was started again
        raise Stopped("engine_install_interrupted", engine=INSTALLABLE[order["engine"]])
    if ended.problem_facts is not None:
        raise AppError(ended.problem_facts.code, **ended.problem_facts.facts)
    if ended.state == "canceled":
        raise Refused("engine_install_canceled", engine=ended.label)
    return packs
