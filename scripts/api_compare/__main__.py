"""Ask llama.cpp's own server every case of the comparison, and write the shapes of its answers down."""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from app.machine.paths import guide_file
from tests.node.chat_api.compared import cases, shape_of

PROJECT = Path(__file__).resolve().parents[2]
RECORD = PROJECT / "tests" / "node" / "chat_api" / "llama_server.json"
START_SECONDS, ANSWER_SECONDS = 60.0, 120.0


def main() -> None:
    """Write the record."""
    arguments = argparse.ArgumentParser(prog="scripts.api_compare", description=__doc__)
    arguments.add_argument(
        "--python", type=Path, required=True, help="of the environment with its server"
    )
    chosen = arguments.parse_args()
    with serving(chosen.python) as base:
        record = {name: asked(base, *case) for name, case in cases().items()}
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "utf-8")
    good = sum(one["status"] == 200 for one in record.values())
    print(f"{len(record)} cases, {good} answered, in {RECORD.relative_to(PROJECT)}")


@contextmanager
def serving(python: Path) -> Iterator[str]:
    """The address of a server that answers."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    script = Path(__file__).with_name("serve.py")
    words = [python, script, sysconfig.get_path("purelib"), guide_file(), str(port)]
    process = subprocess.Popen([str(word) for word in words])
    base = f"127.0.0.1:{port}"
    try:
        end = time.monotonic() + START_SECONDS
        while not answers(base):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit("llama.cpp's server does not start")
            time.sleep(0.2)
        yield base
    finally:
        process.terminate()
        process.wait(10)


def answers(base: str) -> bool:
    try:
        return bool(asked(base, "GET", "/v1/models", None)["status"] == 200)
    except OSError:
        return False


def asked(base: str, method: str, path: str, body: Any) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    with closing(HTTPConnection(base, timeout=ANSWER_SECONDS)) as connection:
        connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return {"status": answer.status, "shape": shape_of(answer.read())}


if __name__ == "__main__":
    main()
