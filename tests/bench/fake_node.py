"""Stands in for a node: the routes of the control API that the benchmark uses, and no model."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DONE = {"/models": {"model": {"name": "fake"}}, "/load": {"loaded": {"state": "ready", "fetched_bytes": 0}}}
PLAIN: dict[str, dict[str, Any]] = {
    "/pairing": {"code": "123456", "address": "127.0.0.1:1"},
    "/pairing/join": {"machine": {"id": "x", "name": "host"}},
    "/unload": {"unloaded": None},
}


class Routes(BaseHTTPRequestHandler):
    """Answers as a node would; an `/ask` for 13 tokens fails, as a test wants it."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != "Bearer t":
            self.reply(401, [{"error": {"message": "No."}}])
        elif self.path in PLAIN:
            self.reply(200, [PLAIN[self.path]])
        elif self.path == "/load" and "shape" in body:
            names = ["host", "lender-1"][: 2 if body["users"] == 4 else 1]
            stages = [{"machine": name, "role": "whole"} for name in names]
            self.reply(200, [{"done": {"loaded": {"state": "ready", "stages": stages}}}])
        elif self.path in DONE:
            self.reply(200, [{"progress": {}}, {"done": DONE[self.path]}])
        elif body["max_tokens"] == 13:
            self.reply(200, [{"delta": {"token_ids": [1]}}, {"error": {"message": "Bad luck."}}])
        else:
            deltas = [{"delta": {"text": "", "token_ids": [n]}} for n in range(body["max_tokens"])]
            stage = {"machine": "host", "first": 0, "last": 4, "busy_s": 1.0, "wait_s": 0.0,
                     "bytes_in": 8, "bytes_out": 8}  # fmt: skip
            self.reply(200, [*deltas, {"done": {"stages": [stage]}}])

    def do_GET(self) -> None:
        machines = {"x": {"name": "fake", "online": True}}
        self.reply(200, [{"pairing": None, "machines": machines}])

    def reply(self, status: int, lines: list[dict[str, Any]]) -> None:
        self.send_response(status)
        self.end_headers()
        for line in lines:
            self.wfile.write(json.dumps(line).encode() + b"\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


class Server(ThreadingHTTPServer):
    """Many may ask in one moment."""

    request_queue_size = 64


def main() -> None:
    home = Path(sys.argv[sys.argv.index("--home") + 1])
    home.mkdir(parents=True)
    server = Server(("127.0.0.1", 0), Routes)
    runtime = {"pid": 1, "port": server.server_port, "token": "t", "version": "0"}
    (home / "runtime.json").write_text(json.dumps(runtime))
    print(json.dumps({"id": "x", "name": "fake", "peer_port": 1, "control_port": 1}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
