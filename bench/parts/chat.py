"""A long chat: how fast it opens, and how long the window blocks while an answer streams in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench import report
from bench.children import ChildFailed
from bench.figures import percentile
from bench.job import Bench, say

TITLE = "A long chat"
MESSAGES, TOKENS, TOKENS_PER_S = 500, 1_200, 60
OPEN_BAR_S, FRAME_BAR_S = 0.3, 0.05
LONGEST_S = 300.0
TOKEN = 4  # approximate characters per token
LAST_WORDS = 2_000  # characters of the other process's output
PIECE = (  # typical text of a model that explains something
    "## Step {n}\n\nThe *first* part is `read_all`, which **never** blocks:\n\n```python\n"
    "def read_all(path: str) -> list[str]:\n    with open(path) as file:\n"
    "        return [line.rstrip() for line in file]\n```\n\n| part | time |\n|---|---|\n"
    "| one | 3 ms |\n| two | 12 ms |\n\n- one thing\n- another one, with a longer line of words\n\n"
)
FORMULAS = (  # added to that by a model that explains mathematics; each step has formulas of its own
    "With $a_{{{n}}} > 0$ and \\(b \\in \\mathbb{{R}}\\) it costs $5:\n\n"
    "$$\n\\int_0^\\infty e^{{-x^2}}\\,dx = \\frac{{\\sqrt{{\\pi}}}}{{{n}}}\n$$\n\n"
)


def chat(bench: Bench) -> None:
    """Measure the real Chat page, rendered off screen, with a stand-in for the node that streams an answer."""
    say(f"chat: {MESSAGES} messages, {TOKENS} tokens at {TOKENS_PER_S} tok/s")
    data = measured(MESSAGES, TOKENS)
    rows = _rows(data, "")
    with_formulas = measured(MESSAGES, TOKENS, formulas=True)
    rows += _rows(with_formulas, ", with formulas")
    head = ["", "median", "99th percentile", "worst", "bar", "holds"]
    data |= {f"formulas_{name}": values for name, values in with_formulas.items()}
    bench.add("chat", data, f"## {TITLE}: {MESSAGES} messages\n\n{report.table(head, rows)}")


def measured(n_messages: int, n_tokens: int, *, formulas: bool = False) -> dict[str, list[float]]:
    """Return the seconds for each opening of a chat of this length, and for each busy stretch during an answer.

    formulas: whether each answer contains formulas.
    """
    piece = PIECE + FORMULAS if formulas else PIECE
    with streaming(n_tokens, piece) as port:
        finished = subprocess.run(
            [sys.executable, "-m", "bench.parts.chat_window", str(port), str(n_messages), piece],
            capture_output=True, text=True, timeout=LONGEST_S, check=False,
            env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        )  # fmt: skip
    if finished.returncode:
        raise ChildFailed(finished.stderr[-LAST_WORDS:])
    data: dict[str, list[float]] = json.loads(finished.stdout)
    return data


def _rows(data: dict[str, list[float]], what: str) -> list[list[str]]:
    opens, busy = sorted(data["open_s"]), sorted(data["busy_s"])
    return [_row(f"open it{what}", opens, OPEN_BAR_S), _row(f"busy at once while it streams{what}", busy, FRAME_BAR_S)]


def _row(name: str, values: list[float], most: float) -> list[str]:
    figures = [percentile(values, 0.5), percentile(values, 0.99), values[-1], most]
    return [name, *(f"{1000 * figure:.0f} ms" for figure in figures), "yes" if values[-1] < most else "NO"]


def tokens(count: int, piece: str = PIECE) -> list[str]:
    """Return an answer as a list of parts of a text, each about as long as a token."""
    text = "".join(piece.format(n=n) for n in range(count * TOKEN // len(piece.format(n=0)) + 1))
    return [text[at : at + TOKEN] for at in range(0, count * TOKEN, TOKEN)]


@contextmanager
def streaming(n_tokens: int, piece: str) -> Iterator[int]:
    """Run a server that streams an answer of `n_tokens` to every question. Yield its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Answers, tokens(n_tokens, piece)))
    thread = threading.Thread(target=server.serve_forever, name="stand-in of a node")
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Answers(BaseHTTPRequestHandler):
    """The handler of POST /ask, which streams lines like those of a node."""

    def __init__(self, pieces: list[str], *args: Any) -> None:
        self._pieces = pieces
        super().__init__(*args)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.end_headers()
        began = time.monotonic()
        for number, text in enumerate(self._pieces):
            self._line({"delta": {"text": text, "token_ids": [number]}})
            time.sleep(max(0.0, began + (number + 1) / TOKENS_PER_S - time.monotonic()))
        ids = list(range(len(self._pieces)))
        self._line({"done": {"finish_reason": "stop", "token_ids": ids, "model": "stand-in"}})

    def _line(self, message: dict[str, object]) -> None:
        self.wfile.write(json.dumps(message).encode() + b"\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the library's name
        """Log nothing."""
