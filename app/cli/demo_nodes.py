"""The nodes of a demo, which are child processes with temporary homes. All are removed when the demo ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from app.cli.node_calls import gather_first_error
from app.core.errors import StageLost
from app.decoding import decode
from app.machine import paths

Json = dict[str, Any]
NAMES = ("den-pc", "attic-pc", "kitchen-laptop", "study-pc", "hall-pc", "garden-laptop")
READY_SECONDS = 60
ENDING_SECONDS = 10.0
LAST_WORDS_SECONDS = 2.0  # for the last output of a dying node
REMOVING_TRIES = 20  # Windows briefly locks the files of an ended process
LEND = "512MiB"
LOG = "demo.log"


@dataclass(frozen=True, slots=True)
class DemoNode:
    """A node that has started and is ready."""

    name: str
    home: Path
    process: asyncio.subprocess.Process
    ready: Json


class DemoNodes:
    """The nodes of one demo; the first is this machine's. `async with DemoNodes(3) as demo` starts `demo.nodes`.

    parent: a folder for their homes, created if necessary. The default is the folder for temporary files.
    """

    def __init__(self, machines: int, parent: Path | None = None) -> None:
        self._parent = parent
        new = (parent, *parent.parents) if parent else ()
        self._created = [folder for folder in new if not folder.exists()]  # innermost first
        self._names = [machine_name(number) for number in range(machines)]
        self._threads = max(1, (os.cpu_count() or 1) // machines)
        self._processes: list[asyncio.subprocess.Process] = []
        self.nodes: list[DemoNode] = []

    async def __aenter__(self) -> Self:
        if self._parent is not None:
            self._parent.mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix="poolhouse-demo-", dir=self._parent))
        try:
            self.nodes = await gather_first_error(self._start(name) for name in self._names)
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _start(self, name: str) -> DemoNode:
        home = self._folder / name
        home.mkdir()
        with (home / LOG).open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *node_command(home, name, self._threads),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # The system's keyring must not keep entries for temporary homes.
                env=paths.python_environment(POOLHOUSE_KEYSTORE="file"),
                **_in_own_group(),
            )
        self._processes.append(process)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(READY_SECONDS):
                line = await process.stdout.readline()
            return DemoNode(name, home, process, decode(line, Json))
        except TimeoutError:
            raise StageLost("demo_slow", name=name, seconds=READY_SECONDS) from None
        except ValueError:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_SECONDS):
                    await process.wait()
            raise StageLost("demo_node_ended", name=name, detail=_last_line(home)) from None

    async def _end(self) -> None:
        """Ask every node to exit, kill those that do not exit in time, and remove their homes."""
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()  # tells the node to end
        try:
            await asyncio.gather(*(_end_process(process) for process in self._processes))
        finally:
            await asyncio.to_thread(_remove, self._folder)
            with contextlib.suppress(OSError):  # the folder may contain other files by now
                for folder in self._created:
                    folder.rmdir()


def machine_name(number: int) -> str:
    return NAMES[number] if number < len(NAMES) else f"machine-{number + 1}"


def node_command(home: Path, name: str, threads: int) -> list[str]:
    """Return the command line of a node that only this computer can reach."""
    return paths.python_command(
        "-m", "app", "node", "--home", str(home), "--name", name, "--port", "0",
        "--bind", "127.0.0.1", "--no-discovery", "--lend", LEND, "--limit", LEND,
        "--threads", str(threads), "--stop-with-stdin",
    )  # fmt: skip


def _in_own_group() -> dict[str, Any]:
    """Return process options that keep Ctrl-C from the nodes, because the demo handles it and stops them in order."""
    if sys.platform == "win32":
        options: dict[str, Any] = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    else:
        options = {"start_new_session": True}
    return options


async def _end_process(process: asyncio.subprocess.Process) -> None:
    workers = _children(process.pid)
    try:
        async with asyncio.timeout(ENDING_SECONDS):
            await process.wait()
    except TimeoutError:
        workers += _children(process.pid)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    for worker in workers:
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.kill()


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _remove(folder: Path) -> None:
    for _ in range(REMOVING_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def _last_line(home: Path) -> str:
    lines = (home / LOG).read_text(encoding="utf-8", errors="replace").split("\n")
    written = [line.strip() for line in lines if line.strip()]
    return written[-1].rstrip(".") if written else "it wrote no error message"
