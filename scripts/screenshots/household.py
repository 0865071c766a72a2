"""The household in the screenshots: three nodes in ordinary use, and in trouble."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from app.cli.commands.demo_command import even_split
from app.cli.demo_nodes import DemoNodes
from app.cli.node_calls import gather_first_error
from app.client import NodeClient
from app.core.errors import AppError
from app.machine.paths import Home
from scripts import real_models
from testbed import tiny

Json = dict[str, Any]
PROJECT = Path(__file__).resolve().parents[2]
MACHINES = 3
JOINED_TRIES, JOINED_S = 200, 0.1
TOO_LITTLE = 16 << 20  # bytes: the least that a machine may lend, too little even for the Guide
ENOUGH = 512 << 20
PLENTY = 4 << 30
LIMIT = 768 << 20
ODD, NEEDED, MISSING = "holiday-model", b"layer_norm_rms_epsilon", b"layer_norm_rms_epsilom"
DISK, UNPLUGGED = "disk", "unplugged"
QUESTIONS = (
    "What is a household?",
    "How do I add a machine?",
    "What does a lender do?",
    "Why is Wi-Fi slower than a cable?",
    "What happens when a machine leaves?",
    "Who can read my chats?",
)


async def household(words: Sequence[str], scenes: Sequence[str]) -> int:
    """Start the nodes, and run a process for each requested scene: `words`, followed by the name of the scene."""
    async with DemoNodes(MACHINES) as demo, AsyncExitStack() as stack:
        homes = [Home.at(node.home) for node in demo.nodes]
        clients = [await stack.enter_async_context(NodeClient(home)) for home in homes]
        await paired(clients)
        await _busy_life(clients[0])
        for scene in scenes:
            await _prepared(scene, clients, homes[0].root)
            if code := await _photographed(scene, homes[0].root, words):
                return code
    return 0


async def paired(clients: Sequence[NodeClient]) -> None:
    """Pair all nodes with the first one, and wait until all links are measured."""
    host, *lenders = clients
    for lender in lenders:
        window = await host.post("/pairing", {"role": "use_and_lend"})
        typed = {"address": window["address"], "code": window["code"]}
        await gather_first_error([host.work("GET", "/pairing/wait"), lender.post("/pairing/join", typed)])
    await _all_there(host, len(clients))
    for client in clients:
        await client.post("/measure", {})


async def loaded(host: NodeClient, n_machines: int) -> None:
    """Load the Guide across all machines."""
    model = next(entry for entry in (await host.get("/models"))["models"] if entry["builtin"])
    await host.work("POST", "/plan", {"model": model["name"]}, lambda _: None)
    body = {"model": model["name"], "split": even_split(model["n_layers"], n_machines)}
    await host.work("POST", "/load", body, lambda _: None)


async def _all_there(host: NodeClient, n_machines: int) -> None:
    for _ in range(JOINED_TRIES):
        known = (await host.get("/status"))["machines"].values()
        if sum(machine["online"] for machine in known) >= n_machines:
            return
        await asyncio.sleep(JOINED_S)
    raise SystemExit("the machines did not find each other")


async def _busy_life(host: NodeClient) -> None:
    """Load the Guide across all machines, and request some answers."""
    await loaded(host, MACHINES)
    for question in QUESTIONS:
        request = {"prompt": question, "max_tokens": 48, "sampling": {"seed": 1}}
        async for _ in host.stream("POST", "/ask", request):
            pass


async def _prepared(scene: str, clients: Sequence[NodeClient], root: Path) -> None:
    """Cause the problem that a scene shows."""
    host = clients[0]
    match scene:
        case "real":
            await _real_model(clients)
        case "limited":
            for client in clients:
                await client.post("/lending", {"limit_bytes": LIMIT})
            await loaded(host, MACHINES)
        case "failed-load":
            await _failed_load(host, root.parent)
        case "too-big":  # as when games use the memory of all machines
            await host.post("/unload", {})
            with suppress(AppError):  # a model is recommended only if none is downloaded
                await host.delete(f"/models/{ODD}")
            for client in clients:
                await client.post("/lending", {"memory_bytes": TOO_LITTLE, "limit_bytes": TOO_LITTLE})
        case "folder-away":
            for client in clients:
                await client.post("/lending", {"memory_bytes": ENOUGH, "limit_bytes": ENOUGH})
            disk = root.parent / DISK
            disk.mkdir()
            await host.post("/folder", {"path": str(disk), "move": False})
            disk.rename(root.parent / UNPLUGGED)


async def _real_model(clients: Sequence[NodeClient]) -> None:
    """Load a public model across all machines, as README's pictures show it."""
    host, name = clients[0], "SmolLM2-135M-Instruct"
    await host.work(
        "POST", "/models", {"path": str(real_models.folder() / real_models.SMOLLM2.file), "name": name}, lambda _: None
    )
    for client in clients:
        await client.post("/lending", {"memory_bytes": PLENTY, "limit_bytes": PLENTY})
    model = next(entry for entry in (await host.get("/models"))["models"] if entry["name"] == name)
    await host.work("POST", "/plan", {"model": name}, lambda _: None)
    body = {"model": name, "split": even_split(model["n_layers"], len(clients))}
    await host.work("POST", "/load", body, lambda _: None)


async def _failed_load(host: NodeClient, folder: Path) -> None:
    """Try to load a file that lacks metadata required by the engine."""
    path = tiny.llama(folder / f"{ODD}.gguf", layers=2)
    path.write_bytes(path.read_bytes().replace(NEEDED, MISSING))
    await host.work("POST", "/models", {"path": str(path), "name": ODD}, lambda _: None)
    try:
        await host.work("POST", "/load", {"model": ODD}, lambda _: None)
    except AppError:
        return
    raise SystemExit(f"{ODD} was loaded")


async def _photographed(scene: str, root: Path, words: Sequence[str]) -> int:
    photographer = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "scripts.screenshots", *words, "--of", str(root), "--only", scene,
        cwd=PROJECT, env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
    )  # fmt: skip
    return await photographer.wait()
