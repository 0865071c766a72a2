"""A node whose web chat for phones is open on loopback, and calls as a phone makes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from app.machine.interfaces import interfaces
from app.network.tls import upstream_context
from tests.gateway.conftest import free_port
from tests.node.pool import Json, TestNode, node


@dataclass(frozen=True)
class Door:
    """The open web chat of a node: its address without `/chat/`, and the certificate."""

    node: TestNode
    base: str
    pem: str

    def control(self, method: str, path: str, body: Json | None = None) -> Json:
        return self.node.control(method, path, body)

    def code(self) -> str:
        return str(self.control("POST", "/phones/code", {})["code"])

    def session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=upstream_context(self.pem))
        return aiohttp.ClientSession(self.base, connector=connector)


@contextmanager
def phone_door(root: Path, name: str = "den") -> Iterator[Door]:
    """A node to which loopback is a network of the household, with phones on and the API for programs off."""
    root.mkdir(parents=True, exist_ok=True)
    (lo,) = [interface.name for interface in interfaces() if "127.0.0.1" in interface.addresses]
    settings = {"name": name, "interfaces": [lo], "api": {"port": free_port()}}
    (root / "settings.json").write_text(json.dumps(settings), "utf-8")
    with node(root, name) as test_node:
        yield opened(test_node)


def opened(test_node: TestNode) -> Door:
    """Its web chat, turned on."""
    state = test_node.control("POST", "/phones", {"on": True})
    (address,) = [text for text in state["addresses"] if text.startswith("https://127.0.0.1:")]
    pem = test_node.control("GET", "/api/certificate")["certificate"]
    return Door(test_node, address.removesuffix("/chat/"), pem)
