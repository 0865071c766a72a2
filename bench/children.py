"""The child processes of a benchmark, which exchange JSON lines with it and are ended by process ID."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

PATIENCE_SECONDS = 900.0  # for the longest single answer: eight long prompts on a slow core
ENDING_SECONDS = 15.0
ROOT = Path(__file__).resolve().parent.parent


class ChildFailed(RuntimeError):
    """A child process that ended, remained silent or reported an error. The message names the child and the reason."""


@dataclass(frozen=True, slots=True)
class Place:
    """The cores, control group and network namespace in which a process runs.

    Empty values are inherited from the parent.
    """

    cpus: tuple[int, ...] = ()
    cgroup: Path | None = None
    netns: str | None = None

    def flags(self) -> list[str]:
        flags = ["--cpus", ",".join(map(str, self.cpus))] if self.cpus else []
        flags += ["--cgroup", str(self.cgroup)] if self.cgroup else []
        return flags + (["--netns", self.netns] if self.netns else [])


class Child:
    """A process that exchanges JSON lines on stdin and stdout. Its stderr goes to a log file."""

    def __init__(self, name: str, argv: Sequence[str], place: Place, log: Path) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        launch = [sys.executable, "-m", "bench.launch", "--parent", str(os.getpid())]
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [*launch, *place.flags(), "--", *argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd=ROOT,
                start_new_session=True,
            )
        self.lines: queue.Queue[str | None] = queue.Queue()
        assert self.process.stdout
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stdout: IO[str]) -> None:
        for line in stdout:
            self.lines.put(line)
        self.lines.put(None)

    def say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def hear(self, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """Return the next JSON line from the child. Raises ChildFailed if none arrives in time."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise ChildFailed(f"{self.name} said nothing for {seconds:.0f} s") from None
        if line is None:
            raise ChildFailed(f"{self.name} ended: {self.last_words()}")
        if not line.startswith("{"):
            return self.hear(seconds)
        message: dict[str, Any] = json.loads(line)
        return message

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-600:].strip() or "no message"

    def family(self) -> list[psutil.Process]:
        """Return the process and its living descendants."""
        try:
            me = psutil.Process(self.process.pid)
            return [me, *me.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def end(self) -> list[int]:
        """End the process, then kill descendants that are still alive. Return their process IDs."""
        family = self.family()[1:]
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(ENDING_SECONDS)
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
        _, left = psutil.wait_procs(family, timeout=2.0)
        for orphan in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                orphan.kill()
        self._reader.join(ENDING_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # it ended with a line unread
                assert pipe
                pipe.close()
        return [orphan.pid for orphan in left]


def cpu_seconds(processes: Sequence[psutil.Process]) -> dict[int, float]:
    """Return the CPU time (user and system) used by each process so far, including children that it has reaped."""
    spent: dict[int, float] = {}
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            buried = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
            spent[process.pid] = times.user + times.system + buried
    return spent


class Children:
    """The child processes of a benchmark run. On exit they are ended in reverse order of their start."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self._stack = contextlib.ExitStack()

    def start(self, name: str, argv: Sequence[str], place: Place) -> Child:
        child = Child(name, argv, place, self.logs / f"{name}.log")
        self._stack.callback(child.end)
        return child

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


@contextlib.contextmanager
def spending(child: Child) -> Iterator[dict[str, float]]:
    """Measure the CPU seconds used during the block.

    `name` is the child itself, and `name/worker` all its descendants.
    """
    before = cpu_seconds(child.family())
    spent: dict[str, float] = {}
    yield spent
    after = cpu_seconds(child.family())
    for pid, seconds in after.items():
        name = child.name if pid == child.process.pid else f"{child.name}/worker"
        spent[name] = spent.get(name, 0.0) + seconds - before.get(pid, 0.0)
