"""A node stops when it is told to, whatever its workers do."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from app.client import NodeClient
from app.core.errors import AppError
from app.machine.paths import Home
from tests.node.pool import BUSY, TestNode, node

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="freezes workers by SIGSTOP")

END_SECONDS = 10


async def load(client: NodeClient) -> str:
    try:
        await client.work("POST", "/load", {"model": "guide", "measure": False})
    except AppError as error:
        return error.reason.code
    return "loaded"


async def frozen(test_node: TestNode, n_workers: int = 1) -> list[psutil.Process]:
    """The workers, stopped as soon as they are there."""
    async with asyncio.timeout(END_SECONDS * BUSY):
        while len(workers := test_node.workers()) < n_workers:  # noqa: ASYNC110  another process
            await asyncio.sleep(0.01)
    for worker in workers:
        worker.send_signal(signal.SIGSTOP)
    return workers


async def test_unload_answers_while_a_worker_hangs(tmp_path: Path) -> None:
    with node(tmp_path, "one") as test_node:
        async with test_node.client() as client, asyncio.TaskGroup() as group:
            loading = group.create_task(load(client), name="load")
            workers = await frozen(test_node)
            async with asyncio.timeout(END_SECONDS * BUSY):
                await client.post("/unload")
            assert (await client.get("/status"))["loaded"] is None
        assert loading.result() == "load_stopped"
        _, alive = psutil.wait_procs(workers, timeout=30)
        assert not alive


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("loaded", [False, True])
async def test_a_node_ends_though_its_workers_hang(tmp_path: Path, loaded: bool) -> None:
    with node(tmp_path, "one") as test_node:
        async with test_node.client() as client, asyncio.TaskGroup() as group:
            loading = group.create_task(load(client), name="load")
            if loaded:
                await asyncio.wait({loading})
            workers = await frozen(test_node, 2 if loaded else 1)
            began = time.monotonic()
            test_node.process.send_signal(signal.SIGTERM)
            test_node.process.send_signal(signal.SIGHUP)  # as systemd sends both when a session ends
            await asyncio.to_thread(test_node.process.wait, END_SECONDS * BUSY)
            assert time.monotonic() - began < END_SECONDS * BUSY
            assert test_node.process.returncode == 0  # in order, not by the last resort
        said = ("loaded",) if loaded else ("load_stopped", "node_went_away")
        assert loading.result() in said
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive


HANGING = """
import time
from pathlib import Path
from app.catalog.shelf import Shelf
from app.node import start
from app.machine.settings import NodeOptions
from app.node.start import run
start.END_SECONDS = 2.0
Shelf.entries = lambda self: time.sleep(60)
run(NodeOptions(home=Path({home!r}), name="one", port=0, bind="127.0.0.1", discovery=False))
"""


@pytest.mark.long
async def test_a_node_whose_thread_hangs_is_ended_all_the_same(tmp_path: Path) -> None:
    """The last resort: a thread cannot be killed, a process can."""
    program = HANGING.format(home=str(tmp_path))
    process = _started(program)
    try:
        assert process.stdout is not None
        await asyncio.to_thread(process.stdout.readline)  # it is ready
        async with NodeClient(Home.at(tmp_path)) as client, asyncio.TaskGroup() as group:
            asking = group.create_task(models(client), name="ask for what hangs")
            await asyncio.sleep(0.5)
            process.terminate()
            await asyncio.to_thread(process.wait, END_SECONDS * BUSY)
        assert asking.result() in ("node_went_away", "node_not_running")
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _started(program: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


async def models(client: NodeClient) -> str:
    try:
        await client.get("/models")
    except AppError as error:
        return error.reason.code
    return "listed"
