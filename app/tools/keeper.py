"""Keep one tool server: pass on its input and output within limits, and end it when our process is gone.

It is run as a script with the standard library only, one process for each server: `keeper.py LIMIT COMMAND…`. At the
end it writes why the server ended to standard error, as one JSON object.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, NoReturn

PIECE_BYTES = 1 << 16
LAST_WORDS_BYTES = 2048
FLOOD_BYTES, FLOOD_SECONDS = 64 << 20, 30.0  # written in so short a time, it never stops
WATCH_SECONDS = 0.5
CREATE_NO_WINDOW = 0x08000000  # a program's console stays hidden
READ_ON_SECONDS = 1.0  # for what the server wrote before it ended
# where launchers such as npx and uvx are, of which an app that was not started in a terminal may know nothing
USUAL_FOLDERS = (
    ("%LOCALAPPDATA%/Microsoft/WinGet/Links", "%ProgramFiles%/nodejs", "%APPDATA%/npm", "~/.local/bin", "~/.cargo/bin")
    if sys.platform == "win32"
    else ("~/.local/bin", "~/.cargo/bin", "~/.bun/bin", "/opt/homebrew/bin", "/usr/local/bin", "/snap/bin")
)


class Kept:
    """The server's process, and the last lines that it wrote."""

    def __init__(self, process: subprocess.Popen[bytes], max_line_bytes: int) -> None:
        self._process, self._max_line_bytes = process, max_line_bytes
        self._words = bytearray()
        self.flooded = False

    def feed(self) -> None:
        """Pass our standard input on to the server. When it ends, the server's input ends too."""
        target = self._process.stdin
        assert target is not None
        with suppress(OSError, ValueError):
            while piece := os.read(0, PIECE_BYTES):
                target.write(piece)
                target.flush()
        with suppress(OSError, ValueError):
            target.close()

    def pass_on(self) -> None:
        """Pass on what the server writes, until a line or the whole output is too long."""
        line_bytes = 0
        recent: deque[tuple[float, int]] = deque()
        n_recent = 0
        for piece in _pieces(self._process.stdout):
            head, newline, tail = piece.rpartition(b"\n")
            longest = max(line_bytes + len(head.partition(b"\n")[0]), *map(len, head.split(b"\n")))
            line_bytes = len(tail) if newline else line_bytes + len(piece)
            now = time.monotonic()
            recent.append((now, len(piece)))
            n_recent += len(piece)
            while recent and now - recent[0][0] > FLOOD_SECONDS:
                n_recent -= recent.popleft()[1]
            if max(longest if newline else 0, line_bytes) > self._max_line_bytes or n_recent > FLOOD_BYTES:
                self.flooded = True
                self._process.kill()
                return
            try:
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
            except OSError:
                return

    def listen(self) -> None:
        """Remember the last lines that the server writes to standard error."""
        for piece in _pieces(self._process.stderr):
            self._words += piece
            del self._words[:-LAST_WORDS_BYTES]

    def last_words(self) -> str:
        """Return the last lines that the server wrote to standard error."""
        return self._words.decode("utf-8", "replace").strip()


def _pieces(source: IO[bytes] | None) -> Iterator[bytes]:
    """Yield the content of a pipe as it arrives."""
    with suppress(OSError, ValueError):
        while source is not None and (piece := os.read(source.fileno(), PIECE_BYTES)):
            yield piece


def _watch_parent() -> None:
    """End the whole process group when our parent process is gone. On Windows, the parent's job object does this."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os.killpg(0, signal.SIGKILL)


def _search_usual_folders() -> None:
    """Add the usual folders of launchers to the search path of the server and of the programs that it starts."""
    known = os.environ.get("PATH", os.defpath).split(os.pathsep)
    usual = (os.path.expanduser(os.path.expandvars(folder)) for folder in USUAL_FOLDERS)
    existing = [folder for folder in usual if os.path.isdir(folder) and folder not in known]
    os.environ["PATH"] = os.pathsep.join([*known, *existing])


def _end() -> NoReturn:
    """End this process and all of the server's processes in our group. On Windows, our job object does so."""
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def main() -> None:
    limit, command = int(sys.argv[1]), sys.argv[2:]
    _search_usual_folders()
    try:
        process = subprocess.Popen(
            # on Windows, only this finds launchers that are scripts, such as npx.cmd
            [shutil.which(command[0]) or command[0], *command[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            creationflags=CREATE_NO_WINDOW if sys.platform == "win32" else 0,
        )
    except (OSError, ValueError) as error:
        _tell({"unstarted": getattr(error, "strerror", None) or str(error)})
        os._exit(127)
    kept = Kept(process, limit)
    if os.name == "posix":
        threading.Thread(target=_watch_parent, daemon=True).start()
    threading.Thread(target=kept.feed, daemon=True).start()
    ears = [threading.Thread(target=work, daemon=True) for work in (kept.pass_on, kept.listen)]
    for ear in ears:
        ear.start()
    code = process.wait()
    for ear in ears:
        ear.join(READ_ON_SECONDS)
    _tell({"flooded": kept.flooded, "code": code, "words": kept.last_words()})
    _end()


def _tell(end: dict[str, object]) -> None:
    with suppress(OSError):
        sys.stderr.write(json.dumps(end) + "\n")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
