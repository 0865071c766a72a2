"""The household of the endurance test: three nodes that run the Guide together, one of which leaves and returns."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from app.cli.demo_nodes import DemoNode, DemoNodes, node_command
from app.client import NodeClient
from app.machine import paths
from app.machine.paths import Home
from scripts.screenshots.household import MACHINES, loaded, paired

SCREEN = "1680x1050x24"
TRAY = ("--edge", "bottom", "--align", "right", "--widthtype", "pixel", "--width", "64",
        "--height", "32")  # fmt: skip
THERE_S, AWAY_S, ENDING_S = 60.0, 8.0, 20.0
PROJECT = Path(__file__).resolve().parents[2]


@asynccontextmanager
async def household() -> AsyncIterator[list[DemoNode]]:
    """Yield paired nodes. The first one has loaded a model across all of them."""
    async with DemoNodes(MACHINES) as demo, AsyncExitStack() as stack:
        homes = [Home.at(node.home) for node in demo.nodes]
        clients = [await stack.enter_async_context(NodeClient(home)) for home in homes]
        await paired(clients)
        await loaded(clients[0], MACHINES)
        yield demo.nodes


async def used(node: DemoNode, guest: DemoNode, words: list[str]) -> int:
    """Run the window over `node` in its own process, while `guest` leaves and returns. Return its exit code."""
    with screen() as environment:
        window = await asyncio.create_subprocess_exec(*words, str(node.home), cwd=PROJECT, env=environment)
        try:
            async with asyncio.TaskGroup() as tasks:
                going = tasks.create_task(_going(guest), name="a machine goes and comes back")
                code = await window.wait()
                going.cancel()
        finally:
            if window.returncode is None:  # the run was interrupted
                window.terminate()
                await _ended(window)
        return code


async def _going(node: DemoNode) -> None:
    process = node.process
    try:
        while True:
            await asyncio.sleep(THERE_S)
            await _ended(process)
            await asyncio.sleep(AWAY_S)
            process = await _begun(node)
    finally:
        await _ended(process)


async def _begun(node: DemoNode) -> asyncio.subprocess.Process:
    """Start the node of this machine again."""
    return await asyncio.create_subprocess_exec(
        *node_command(node.home, node.name, 1), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=paths.python_environment(POOLHOUSE_KEYSTORE="file"),
    )  # fmt: skip


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Shut the node down in an orderly way."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(ENDING_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


@contextmanager
def screen() -> Iterator[dict[str, str]]:
    """Yield an environment with a virtual screen and, if available, a tray. Without Xvfb, Qt renders off screen."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QT_")}
    if not shutil.which("Xvfb"):
        yield environment | {"QT_QPA_PLATFORM": "offscreen"}
        return
    reading, writing = os.pipe()
    with ExitStack() as stack:
        words = ("-displayfd", str(writing), "-screen", "0", SCREEN, "-nolisten", "tcp")
        _started(stack, "Xvfb", *words, environment=environment, passed=(writing,))
        os.close(writing)
        with os.fdopen(reading) as pipe:
            environment |= {"DISPLAY": f":{pipe.readline().strip()}", "QT_QPA_PLATFORM": "xcb"}
        _started(stack, "openbox", "--sm-disable", environment=environment)
        _started(stack, "trayer", *TRAY, environment=environment)
        yield environment


def _started(
    stack: ExitStack, name: str, *words: str, environment: dict[str, str], passed: tuple[int, ...] = ()
) -> None:
    """Run a program until `stack` is closed, if it is installed."""
    if shutil.which(name):
        made = subprocess.Popen(
            [name, *words], env=environment, pass_fds=passed,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        stack.callback(made.wait)
        stack.callback(made.terminate)
