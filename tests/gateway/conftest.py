"""One real node with its Chat API open, for all tests of this folder."""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from dataclasses import dataclass

import aiohttp
import pytest

from tests.node.pool import Json, TestNode, node


@dataclass(frozen=True)
class Open:
    """The address of an open API, and its key."""

    node: TestNode
    port: int
    key: str
    model: str = "guide"

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def control(self, method: str, path: str, body: Json | None = None) -> Json:
        """One call of the control API."""
        return self.node.control(method, path, body)


def opened(test_node: TestNode, **more: bool) -> Open:
    """Its Chat API, turned on."""
    result = test_node.control("POST", "/api", {"on": True, "port": free_port(), **more})
    (key,) = test_node.control("GET", "/api/keys")["keys"]
    return Open(test_node, result["listens_at"], key["key"])


def free_port() -> int:
    """Below those that systems hand out, so that no connection of another test gets it meanwhile."""
    while True:
        port = secrets.choice(range(20_000, 32_000))
        with socket.socket() as sock, suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Shared by all: what a test changes it puts back."""
    with node(tmp_path_factory.mktemp("chat_api"), "den") as test_node:
        yield opened(test_node)


@pytest.fixture
async def http(api: Open) -> AsyncGenerator[aiohttp.ClientSession, None]:
    """A plain client with the key."""
    headers = {"Authorization": f"Bearer {api.key}"}
    async with aiohttp.ClientSession(api.base, headers=headers) as session:
        yield session
