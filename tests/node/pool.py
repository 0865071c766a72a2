"""Real nodes for tests: processes with homes of their own, paired by code on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from app.client import NodeClient
from app.machine.paths import Home

Json = dict[str, Any]
END_SECONDS = 10
BUSY = 6.0  # times as long while other tests run beside, on a computer that may be slow
NOBODY: Json = {"running": 0, "waiting": 0, "line": []}  # answers of a node at rest
REST_SECONDS = 5.0


@dataclass(frozen=True)
class TestNode:
    """One node that is ready."""

    __test__ = False
    name: str
    root: Path
    process: subprocess.Popen[str]
    ready: Json
    launch: tuple[str, ...] = ()  # the command that puts another into the node's network

    def client(self) -> NodeClient:
        return NodeClient(Home.at(self.root))

    def control(self, method: str, path: str, body: Json | None = None) -> Json:
        """One call of its control API: a command line without the second that Python takes to start."""

        async def call() -> Json:
            async with self.client() as client:
                match method:
                    case "GET":
                        return await client.get(path)
                    case "DELETE":
                        return await client.delete(path)
                    case _:
                        return await client.post(path, body)

        with ThreadPoolExecutor(1) as apart:  # a loop may run in this thread
            return apart.submit(asyncio.run, call()).result()

    def work(self, path: str, body: Json) -> Json:
        """Ask for what takes a while, as a command does, and wait for its end."""

        async def call() -> Json:
            async with self.client() as client:
                return await client.work("POST", path, body)

        with ThreadPoolExecutor(1) as apart:
            return apart.submit(asyncio.run, call()).result()

    def answers(self) -> Json:
        """Return how many answers it is making, and how many wait."""
        return dict(self.control("GET", "/status")["answers"])

    async def until_nobody(self, within_s: float = REST_SECONDS) -> None:
        """Nothing is answered any more, soon."""
        late = time.monotonic() + within_s * BUSY
        while (result := await asyncio.to_thread(self.answers)) != NOBODY:
            assert time.monotonic() < late, f"answers go on that nobody waits for: {result}"
            await asyncio.sleep(0.05)

    def workers(self) -> list[psutil.Process]:
        """Its workers; what else it starts (a tool that keeps the computer awake, a look at an engine) is none."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in children if _is_worker(child)]

    async def one_worker(self) -> psutil.Process:
        """Its only worker, once those of what was loaded before have ended."""
        late = time.monotonic() + REST_SECONDS * BUSY
        while len(processes := await asyncio.to_thread(self.workers)) != 1:
            assert time.monotonic() < late, f"{self.name} has {len(processes)} workers"
            await asyncio.sleep(0.02)
        return processes[0]

    def run(self, *words: str, within_s: float = 60) -> subprocess.CompletedProcess[str]:
        """One command line against this node."""
        return subprocess.run(
            [*self.launch, sys.executable, "-m", "app", *words, "--home", str(self.root)],
            capture_output=True, text=True, timeout=within_s, check=False,
        )  # fmt: skip


def _is_worker(process: psutil.Process) -> bool:
    """Return whether a node started this process. A worker's own children look alike."""
    try:
        by = process.parent()
        names = [process.cmdline()[-1:] for process in (process, by) if process is not None]
        return names[:1] == [["backends"]] and names[1:] != [["backends"]]
    except psutil.Error:  # it is gone
        return False


@contextmanager
def node(
    root: Path, name: str, lend: str = "1GiB", launch: tuple[str, ...] = (),
    bind: tuple[str, ...] = ("--bind", "127.0.0.1"), names: tuple[str, ...] = ("--no-discovery",),
    port: int = 0,
) -> Iterator[TestNode]:  # fmt: skip
    """A node until the end of the block; then it must end by itself, workers and all."""
    process = _begun(root, name, lend, launch, bind, names, port)
    try:
        yield _ready(process, root, name, launch)
    finally:
        _end(process)


def _begun(
    root: Path, name: str, lend: str = "1GiB", launch: tuple[str, ...] = (),
    bind: tuple[str, ...] = ("--bind", "127.0.0.1"), names: tuple[str, ...] = ("--no-discovery",),
    port: int = 0,
) -> subprocess.Popen[str]:  # fmt: skip
    root.mkdir(parents=True, exist_ok=True)
    with (root / "stderr.txt").open("a") as log:
        return subprocess.Popen(
            [*launch, sys.executable, "-m", "app", "node", "--home", str(root), "--name", name,
             "--port", str(port), *bind, *names, "--lend", lend, "--limit", lend, "--threads", "1"],
            stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | {"POOLHOUSE_KEYSTORE": "file"},
        )  # fmt: skip


def _ready(process: subprocess.Popen[str], root: Path, name: str, launch: tuple[str, ...] = ()) -> TestNode:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, (root / "stderr.txt").read_text()
    return TestNode(name, root, process, json.loads(line), launch)


@contextmanager
def paired(folder: Path, *names: str, lend: str = "1GiB") -> Iterator[list[TestNode]]:
    """Nodes of one household; the first is admin and host. They start together, and end together."""
    processes: list[subprocess.Popen[str]] = []
    try:
        processes += (_begun(folder / name, name, lend) for name in names)
        begun = zip(processes, names, strict=True)
        nodes = [_ready(process, folder / name, name) for process, name in begun]
        for other in nodes[1:]:
            pair(nodes[0], other)
        yield nodes
    finally:
        _end(*processes)


def pair(host: TestNode, other: TestNode, here: str = "", role: str = "use_and_lend") -> Json:
    """Both are linked afterwards; what the other one was told. here: the host's address, as it is from the other
    one's network."""
    if host.launch or other.launch:  # in a network of its own, where no control port is reached from here
        opened = json.loads(host.run("pair", "--open", "--role", role.replace("_", "-"), "--json").stdout)
    else:
        opened = host.control("POST", "/pairing", {"role": role})
    address, _, port = opened["address"].rpartition(":")
    place, code = f"{here or address}:{port}", opened["code"]
    if host.launch or other.launch:
        done = other.run("pair", place, "--code", code, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        data: Json = json.loads(done.stdout)
        return data
    data = other.control("POST", "/pairing/join", {"address": place, "code": code})
    late = time.monotonic() + REST_SECONDS * BUSY
    while not (_sees(host, other) and _sees(other, host)):
        assert time.monotonic() < late, f"{other.name} was paired and is not linked"
        time.sleep(0.02)
    return data


def _sees(test_node: TestNode, other: TestNode) -> bool:
    machines = test_node.control("GET", "/status")["machines"]
    return bool(machines.get(other.ready["id"], {}).get("online"))


def _end(*processes: subprocess.Popen[str]) -> None:
    """End the node as Ctrl-C would. A node that needs a kill, or leaves a child behind, is a failure."""
    running = [process for process in processes if process.poll() is None]
    children = [child for process in running for child in psutil.Process(process.pid).children(recursive=True)]
    for process in running:
        process.terminate()
    try:
        for process in processes:
            process.wait(END_SECONDS * BUSY)
    finally:
        for process in processes:
            process.kill()
            if process.stdout is not None:
                process.stdout.close()
    _, alive = psutil.wait_procs(children, timeout=END_SECONDS * BUSY)
    for child in alive:
        child.kill()
    assert not alive, f"left running: {alive}"
