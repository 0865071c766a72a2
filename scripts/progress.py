"""A status line that shows the progress of a long command on a terminal or in a log."""

from __future__ import annotations

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, TextIO

LOG_EVERY_SECONDS = 15.0  # interval in a log; a terminal is updated every second
READ_EVERY_SECONDS = 1.0

_NINJA = re.compile(r"^\s*\[(\d+)/(\d+)\] ")
_PIP = re.compile(r"^\s*(Collecting|Downloading|Installing collected|Building wheel)\b\s*(\S*)")


class Share(NamedTuple):
    """The number of finished items, and the total."""

    done: int
    total: int


def compiled(line: str) -> Share | None:
    """Parse ninja's progress, as in `[12/210] Building CXX object …`. Return None for any other line."""
    match = _NINJA.match(line)
    if not match:
        return None
    done, total = int(match[1]), int(match[2])
    return Share(done, total) if 0 < done <= total else None


def doing(line: str) -> str | None:
    """Describe what pip is doing according to a line of its output, or return None if it says nothing new."""
    match = _PIP.match(line)
    if not match:
        return None
    verb, package = match[1], match[2].split("==")[0]
    return "installing" if verb.startswith("Installing") else f"{verb.lower()} {package}"


def clock_face(seconds: float) -> str:
    """Format seconds as `0:07`, `4:31` or `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class View:
    """The output of a command so far, from which its progress is derived."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._share: Share | None = None
        self._doing = ""

    def hear(self, line: str) -> None:
        """Process a line of the command's output."""
        share = compiled(line)
        if share and (self._share is None or share.total != self._share.total or share > self._share):
            self._share = share
        self._doing = doing(line) or self._doing

    def line(self, elapsed_seconds: float) -> str:
        """Return a line such as `compiling 43 % (91 of 210), 1:52`."""
        if self._share:
            done, total = self._share
            middle = f"{100 * done // total} % ({done} of {total} files)"
        else:
            middle = self._doing or "starting"
        return f"{self._label}: {middle}, {clock_face(elapsed_seconds)}"


class Teller:
    """A writer of a status line, which is updated in place on a terminal and written occasionally to a log."""

    def __init__(self, out: TextIO, clock: Callable[[], float]) -> None:
        self._out = out
        self._clock = clock
        self._terminal = out.isatty()
        self._told_at = clock()
        self._told = ""

    def say(self, text: str) -> None:
        """Write a permanent line."""
        self.wipe()
        print(text, file=self._out, flush=True)

    def show(self, text: str) -> None:
        """Replace the status line. If the output is a log, write it at most every 15 seconds."""
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            self._out.write("\r" + f"    {text}"[:width].ljust(width))
            self._out.flush()
            self._told = text
        elif self._clock() - self._told_at >= LOG_EVERY_SECONDS:
            self._told_at = self._clock()
            print(f"    {text}", file=self._out, flush=True)

    def wipe(self) -> None:
        """Erase the status line."""
        if self._terminal and self._told:
            self._out.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
            self._told = ""
        self._told_at = self._clock()


def run(command: list[str], env: dict[str, str], label: str, log: TextIO) -> tuple[int, str]:
    """Run a command to its end and show its progress. Return its exit code and output."""
    teller, view, started = Teller(sys.stdout, time.monotonic), View(label), time.monotonic()
    heard: list[str] = []
    log.write("\n$ " + " ".join(command) + "\n")
    with subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as child:
        try:
            for line in _lines_or_ticks(child):
                if line:
                    heard.append(line)
                    log.write(line)
                    view.hear(line)
                teller.show(view.line(time.monotonic() - started))
        except BaseException:
            end(child)  # Ctrl-C must not leave compilers running in the background
            raise
        finally:
            teller.wipe()
    return child.returncode, "".join(heard)


def end(child: subprocess.Popen[str]) -> None:
    """Terminate a command with all its descendants. Otherwise, compilers started by pip would continue to run."""
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(child.pid)], check=False)
    else:
        os.killpg(child.pid, signal.SIGTERM)


def _lines_or_ticks(child: subprocess.Popen[str]) -> Iterator[str]:
    """Yield the lines that the command prints, and "" for each second without one."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in child.stdout or ():
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, name="read", daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=READ_EVERY_SECONDS)
        except queue.Empty:
            yield ""
            continue
        if line is None:
            return
        yield line
