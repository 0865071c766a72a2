"""Tests with llama.cpp's own server beside a real household: `make servers` compiles it and runs these."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.api_compare.server import answers
from scripts.llama_server import built
from scripts.real_models import SMOLLM2, folder

HERE = Path(__file__).parent
MODEL = folder() / SMOLLM2.file  # now: each test has a home of its own
SERVER = built()
SECONDS = 240
START_SECONDS = 60.0
KEY = "sk-of-the-workstation"


@dataclass(frozen=True)
class LlamaServer:
    """A running llama-server."""

    process: subprocess.Popen[bytes]
    port: int
    name = "smol-there"  # its name for the model

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.servers)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SECONDS))
        if SERVER is None:
            item.add_marker(pytest.mark.skip(reason="needs llama-server: `make servers` compiles it"))
        if not MODEL.exists():
            item.add_marker(pytest.mark.skip(reason=f"needs {MODEL.name}: `make servers` fetches it"))


@contextmanager
def llama_server(slots: int = 8, threads: int = 1) -> Iterator[LlamaServer]:
    """llama.cpp's own server with SmolLM2, until the end of the block or its own."""
    assert SERVER is not None
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    words = [SERVER, "-m", MODEL, "--alias", LlamaServer.name, "--host", "127.0.0.1", "--port", port, "-c",
             1024 * slots, "-np", slots, "-t", threads, "--api-key", KEY, "--offline", "--no-warmup",
             "--log-verbosity", 0]  # fmt: skip
    process = subprocess.Popen([str(word) for word in words])
    try:
        late = time.monotonic() + START_SECONDS
        while not answers(f"127.0.0.1:{port}"):
            assert process.poll() is None, "llama-server ended"
            assert time.monotonic() < late, "llama-server does not answer"
            time.sleep(0.2)
        yield LlamaServer(process, port)
    finally:
        process.kill()
        process.wait(10)


@pytest.fixture
def server() -> Iterator[LlamaServer]:
    """A server of the test's own, which it may kill."""
    with llama_server() as made:
        yield made
