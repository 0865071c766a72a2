"""A small client for the loopback API of a node, for plain and streamed requests."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 900.0


class NodeRefused(RuntimeError):
    """An error answer of a node. The message is the node's sentence."""


class Control:
    """A client of the node in a home folder. It is thread-safe, because each request opens its own connection."""

    def __init__(self, home: Path) -> None:
        runtime = json.loads((home / "runtime.json").read_text())
        self.port: int = runtime["port"]
        self.pid: int = runtime["pid"]
        self._token: str = runtime["token"]

    def _open(self, method: str, path: str, body: Any) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", "Connection": "close"}
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, body=data, headers=headers)
        response = connection.getresponse()
        if response.status >= 300:
            raise NodeRefused(f"{method} {path}: {_sentence(response.read())}")
        return response

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        with self._open(method, path, body) as response:
            answer: dict[str, Any] = json.loads(response.read() or b"{}")
            return answer

    def lines(self, path: str, body: Any) -> Iterator[dict[str, Any]]:
        """Yield the lines of a streamed answer. Raises NodeRefused for an error line."""
        with self._open("POST", path, body) as response:
            while line := response.readline():
                message: dict[str, Any] = json.loads(line)
                if "error" in message:
                    raise NodeRefused(f"POST {path}: {_sentence(line)}")
                yield message

    def finish(self, path: str, body: Any) -> dict[str, Any]:
        """Wait for a streamed answer to end, and return the content of its `done` line."""
        for message in self.lines(path, body):
            if "done" in message:
                done: dict[str, Any] = message["done"]
                return done
        raise NodeRefused(f"POST {path}: it ended without an answer")


def _sentence(data: bytes) -> str:
    try:
        return str(json.loads(data)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return data.decode(errors="replace")[:300]
