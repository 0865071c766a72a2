"""`make fuzz-api`: schemathesis asks a node's Chat API everything its description allows, and much it does not.

By loopback, then over TLS by the LAN's door, with a model that writes, one that embeds, and an upstream, which are
named often enough to be met. No answer may be a 500, and none of another status than described.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from app.machine.interfaces import interfaces
from app.node.chat_api.description import description
from tests import tiny_bert

PROJECT = Path(__file__).resolve().parent.parent
LOCAL_SHARE = 0.75  # of the time; the rest is the LAN's
MODELS = ["guide", "default", "bert", "far"]
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,ignored_auth"


def main() -> int:
    """Runs in the project's own environment; `--tool` is schemathesis in one of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True, help="the program schemathesis")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="poolhouse-fuzz-") as home:
        (lo,) = [one.name for one in interfaces() if "127.0.0.1" in one.addresses]
        chosen_before = {"name": "fuzz", "interfaces": [lo]}
        (Path(home) / "settings.json").write_text(json.dumps(chosen_before), encoding="utf-8")
        command = [sys.executable, "-m", "app", "node", "--home", home, "--port", "0",
                   "--bind", "127.0.0.1", "--no-discovery", "--lend", "0"]  # fmt: skip
        environment = os.environ | {"POOLHOUSE_KEYSTORE": "file"}
        with subprocess.Popen(
            command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, env=environment
        ) as node:
            try:
                assert node.stdout is not None
                node.stdout.readline()  # it is ready
                return fuzz(Path(home), chosen.tool, chosen.seconds, chosen.seed)
            finally:
                node.terminate()


def fuzz(home: Path, tool: str, seconds: int, seed: int) -> int:
    """Open the API, and let the tool loose on it. Its exit code."""
    poolhouse(home, "import", str(tiny_bert.bert(home / "bert.gguf")), "--name", "bert")
    on = ("api", "on", "--lan", "--port", str(free_port()), "--json")
    opened = json.loads(poolhouse(home, *on))
    key = json.loads(poolhouse(home, "api", "key", "--json"))["key"]
    base = f"http://127.0.0.1:{opened['listens_at']}"
    (lan,) = [one for one in opened["lan_addresses"] if one.startswith("https://127.0.0.1:")]
    pem = home / "lan.pem"
    pem.write_text(poolhouse(home, "api", "certificate"), encoding="utf-8")
    add_upstream(home, f"{base}/v1", key)
    told = home / "openapi.json"
    told.write_text(json.dumps(naming(json.loads(description()))), encoding="utf-8")
    local = round(seconds * LOCAL_SHARE)
    doors = [
        (base, local, []),
        (lan.removesuffix("/v1"), seconds - local, ["--tls-verify", str(pem)]),
    ]
    codes = []
    for url, within_s, more in doors:
        command = [tool, "run", str(told), "--url", url, "--header", f"Authorization:Bearer {key}",
                   "--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-time", str(within_s),
                   "--request-timeout", "60", "--seed", str(seed), "--no-color",
                   "--suppress-health-check", "all", "--continue-on-failure", "--warnings", "off", *more]  # fmt: skip
        codes.append(subprocess.run(command, cwd=home, check=False).returncode)
    return max(codes)


def add_upstream(home: Path, url: str, key: str) -> None:
    """The node itself, under another name: what it answers there is as odd as what it was asked."""
    upstream = ("upstream", "add", "far", url, "--model", "far=guide", "--cap-tokens", "1000000")
    command = [sys.executable, "-m", "app", *upstream, "--home", str(home)]
    environment = os.environ | {"POOLHOUSE_UPSTREAM_KEY": key}
    subprocess.run(command, cwd=PROJECT, env=environment, check=True)
    poolhouse(home, "upstream", "on", "far")


def naming(document: dict[str, Any]) -> dict[str, Any]:
    """The description with the models that there are: by chance alone nobody would ask for one."""
    for schema in document["components"]["schemas"].values():
        fields = schema.get("properties", {})
        if "model" in fields:
            fields["model"] = {"anyOf": [{"enum": MODELS}, fields["model"]]}
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
