"""`make fuzz-api`: schemathesis sends requests to a node's Chat API, both valid and invalid ones.

It tests the loopback port, the LAN port with TLS, and the port for guests with a guest's certificate. The node has
a model that generates text, one that computes embeddings, and an upstream; requests often contain their names. No
answer may have the status 500, or differ from the API description in status, content type or content. The same
applies to each part of a stream.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from app.api import requests
from app.gateway.openapi_document import TEMPLATE, description
from app.machine.interfaces import interfaces
from app.network.identity import PEM_NAME
from app.network.peer.listener import ANSWERS_PATH
from tests import tiny_bert

PROJECT = Path(__file__).resolve().parent.parent
LAN_SHARE = GUEST_SHARE = 0.2  # of the time; the rest is for loopback
MODELS = ["guide", "default", "bert", "far"]
KEY_CHECK = ",ignored_auth"
CHECKS = f"not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance{KEY_CHECK}"
HOOKS = {"SCHEMATHESIS_HOOKS": str(PROJECT / "scripts" / "fuzz_hooks.py")}
KEYSTORE = {"POOLHOUSE_KEYSTORE": "file"}


@dataclass(frozen=True)
class Door:
    """A port of the Chat API. `share` is the fraction of the time for which it is tested."""

    url: str
    share: float
    words: tuple[str, ...]
    checks: str = CHECKS
    guests: bool = False


def main() -> int:
    """Run the nodes in the project's environment. `--tool` is the path of schemathesis in its own environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True, help="the program schemathesis")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="poolhouse-fuzz-") as folder:
        host, guest = Path(folder) / "host", Path(folder) / "guest"
        with node(host, "fuzz") as runtime, node(guest, "visitor"):
            opened = json.loads(poolhouse(host, "pair", "--open", "--guest", "--json"))
            poolhouse(guest, "pair", opened["address"], "--code", opened["code"])
            doors = (*own_doors(host), guests_door(guest, runtime["peer_port"]))
            return max(fuzz(host, door, chosen) for door in doors)


@contextmanager
def node(home: Path, name: str) -> Iterator[dict[str, Any]]:
    """Run a node. Yield the information that it printed when it was ready."""
    home.mkdir()
    (lo,) = [interface.name for interface in interfaces() if "127.0.0.1" in interface.addresses]
    chosen_before = {"name": name, "interfaces": [lo]}
    (home / "settings.json").write_text(json.dumps(chosen_before), encoding="utf-8")
    command = [sys.executable, "-m", "app", "node", "--home", str(home), "--port", "0",
               "--bind", "127.0.0.1", "--no-discovery", "--lend", "0"]  # fmt: skip
    with subprocess.Popen(
        command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, env=os.environ | KEYSTORE
    ) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def own_doors(home: Path) -> tuple[Door, Door]:
    """Open the ports for programs. Return those on the loopback interface and on the LAN."""
    poolhouse(home, "import", str(tiny_bert.bert(home / "bert.gguf")), "--name", "bert")
    on = ("api", "on", "--lan", "--port", str(free_port()), "--json")
    opened = json.loads(poolhouse(home, *on))
    key = json.loads(poolhouse(home, "api", "key", "--json"))["key"]
    base = f"http://127.0.0.1:{opened['listens_at']}"
    (lan,) = [address for address in opened["lan_addresses"] if address.startswith("https://127.0.0.1:")]
    pem = home / "lan.pem"
    pem.write_text(poolhouse(home, "api", "certificate"), encoding="utf-8")
    add_upstream(home, f"{base}/v1", key)
    with_key = ("--header", f"Authorization:Bearer {key}")
    far = Door(lan.removesuffix("/v1"), LAN_SHARE, (*with_key, "--tls-verify", str(pem)))
    return Door(base, 1 - LAN_SHARE - GUEST_SHARE, with_key), far


def guests_door(home: Path, port: int) -> Door:
    """Return the host's port for guests, which accepts the certificate of a guest as its key."""
    content = (home / "identity" / PEM_NAME).read_bytes()
    secret = (home / "identity" / "passphrase").read_text(encoding="ascii")
    key = serialization.load_pem_private_key(content, secret.encode("ascii")).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate = x509.load_pem_x509_certificate(content)
    file = home / "open.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + key)
    words = ("--tls-verify", "false", "--request-cert", str(file))  # its certificate names no address
    url = f"https://127.0.0.1:{port}{ANSWERS_PATH}"
    return Door(url, GUEST_SHARE, words, CHECKS.removesuffix(KEY_CHECK), guests=True)


def fuzz(home: Path, door: Door, chosen: argparse.Namespace) -> int:
    """Run schemathesis against a port. Return its exit code."""
    description_file = home / "openapi.json"
    document = of_lines(naming(json.loads(description())))
    description_file.write_text(json.dumps(for_members(document) if door.guests else document), encoding="utf-8")
    seconds = str(round(chosen.seconds * door.share))
    tool = Path(chosen.tool).absolute()  # the tool runs in another folder
    command = [str(tool), "run", str(description_file), "--url", door.url, "--checks", door.checks,
               "--phases", "examples,coverage,fuzzing", "--max-time", seconds,
               "--request-timeout", "60", "--seed", str(chosen.seed), "--no-color",
               "--suppress-health-check", "all", "--continue-on-failure", "--warnings", "off",
               *door.words]  # fmt: skip
    return subprocess.run(command, cwd=home, env=os.environ | HOOKS, check=False).returncode


def for_members(document: dict[str, Any]) -> dict[str, Any]:
    """Return the API description for guests: without metrics, but with the routes used by a guest's window."""
    own = TEMPLATE.format(name="own_{name}")
    (ask,), shapes = msgspec.json.schema_components([requests.Ask], ref_template=own)
    document["components"]["schemas"] |= {f"own_{name}": schema for name, schema in shapes.items()}
    model = shapes["Ask"]["properties"]["model"]
    model["anyOf"] = [{"enum": MODELS}, *model["anyOf"]]
    paths = document["paths"]
    for path in ("/metrics", "/openapi.json"):
        del paths[path]
    refused = {
        status: answer for status, answer in paths["/v1/completions"]["post"]["responses"].items() if status != "200"
    }
    lines = {"description": "The answer", "content": {"application/x-ndjson": {}}}
    listed = {"description": "The models", "content": {"application/json": {}}}
    paths["/models"] = {"get": {"responses": {"200": listed} | refused}}
    body = {"required": True, "content": {"application/json": {"schema": ask}}}
    paths["/ask"] = {"post": {"requestBody": body, "responses": {"200": lines} | refused}}
    return document


def add_upstream(home: Path, url: str, key: str) -> None:
    """Add the node itself as an upstream under another name, so that upstream answers are as odd as the requests."""
    upstream = ("upstream", "add", "far", url, "--model", "far=guide", "--cap-tokens", "1000000")
    command = [sys.executable, "-m", "app", *upstream, "--home", str(home)]
    environment = os.environ | {"POOLHOUSE_UPSTREAM_KEY": key}
    subprocess.run(command, cwd=PROJECT, env=environment, check=True)
    poolhouse(home, "upstream", "on", "far")


def naming(document: dict[str, Any]) -> dict[str, Any]:
    """Return the API description with the names of existing models, which random requests would hardly ever contain."""
    for schema in document["components"]["schemas"].values():
        fields = schema.get("properties", {})
        if "model" in fields:
            fields["model"] = {"anyOf": [{"enum": MODELS}, fields["model"]]}
    return document


def of_lines(document: dict[str, Any]) -> dict[str, Any]:
    """Return the API description with Ollama's streams described as lists of lines, as which the hooks decode them."""
    for path in document["paths"].values():
        for route in path.values():
            content = route["responses"]["200"]["content"]
            if lines := content.get("application/x-ndjson"):
                lines["schema"] = {"type": "array", "items": lines["schema"]}
    return document


def poolhouse(home: Path, *words: str) -> str:
    command = [sys.executable, "-m", "app", *words, "--home", str(home)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
