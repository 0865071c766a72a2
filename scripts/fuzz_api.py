"""`make fuzz-api`: schemathesis asks a node's Chat API everything its description allows, and much it does not.

No answer may be a 500, and none of another status than described.
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

PROJECT = Path(__file__).resolve().parent.parent
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,ignored_auth"


def main() -> int:
    """Runs in the project's own environment; `--tool` is schemathesis in one of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True, help="the program schemathesis")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="poolhouse-fuzz-") as home:
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
    opened = json.loads(poolhouse(home, "api", "on", "--port", str(free_port()), "--json"))
    key = json.loads(poolhouse(home, "api", "key", "--json"))["key"]
    base = f"http://127.0.0.1:{opened['listens_at']}"
    command = [tool, "run", f"{base}/openapi.json", "--url", base, "--header", f"Authorization:Bearer {key}",
               "--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-time", str(seconds),
               "--request-timeout", "60", "--seed", str(seed), "--no-color", "--suppress-health-check", "all",
               "--continue-on-failure", "--warnings", "off"]  # fmt: skip
    return subprocess.run(command, cwd=home, check=False).returncode


def poolhouse(home: Path, *words: str) -> str:
    command = [sys.executable, "-m", "app", *words, "--home", str(home)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
