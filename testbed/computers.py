"""The simulated computers of a small network, with a node on each of them."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.namespaces import Lan

Json = dict[str, Any]
NAMES = ("den-pc", "attic-pc", "kitchen-pc")


@dataclass
class Computer:
    """A computer of the network, and the node that runs on it."""

    lan: Lan
    number: int
    root: Path
    lend: str = "0"
    process: subprocess.Popen[str] | None = None
    ready: Json = field(default_factory=dict)

    @property
    def name(self) -> str:
        return NAMES[self.number] if self.number < len(NAMES) else f"pc-{self.number}"

    @property
    def pid(self) -> int:
        """Return the process ID of the node, no matter which process started it."""
        return int(json.loads((self.root / "runtime.json").read_text())["pid"])

    def start(self, *flags: str) -> None:
        self.root.mkdir(exist_ok=True)
        with (self.root / "stderr.txt").open("a") as log:
            self.process = self.lan.start(
                self.number, sys.executable, "-m", "app", "node", "--home", str(self.root), *flags,
                "--name", self.name, "--lend", self.lend, "--limit", self.lend, "--threads", "1",
                stdout=subprocess.PIPE, stderr=log, env=os.environ | {"POOLHOUSE_KEYSTORE": "file"},
            )  # fmt: skip

    def wait(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, (self.root / "stderr.txt").read_text()
        self.ready = json.loads(line)

    def run(self, *words: str) -> Json:
        """Run a command of the app on this computer. Assert that it succeeds, and return its JSON output."""
        process = self.lan.start(
            self.number, sys.executable, "-m", "app", *words, "--home", str(self.root), "--json",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        output, beside = process.communicate(timeout=60)
        assert process.returncode == 0, output + beside
        answer: Json = json.loads(output)
        return answer

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        runtime = json.loads((self.root / "runtime.json").read_text())
        return self.lan.on(self.number, lambda: _request(runtime, method, path, body))

    def linked(self) -> set[str]:
        return set(self.ask("GET", "/status")["links"])

    def near(self) -> set[str]:
        return set(self.ask("GET", "/status")["strangers"])

    def end(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            finally:
                self.process.kill()
                assert self.process.stdout is not None
                self.process.stdout.close()
            self.process = None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.end()


def _request(runtime: Json, method: str, path: str, body: Json | None) -> Json:
    connection = http.client.HTTPConnection("127.0.0.1", runtime["port"], timeout=20)
    try:
        headers = {"Authorization": f"Bearer {runtime['token']}", "Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, headers)
        answer: Json = json.loads(connection.getresponse().read())
        return answer
    finally:
        connection.close()


def started(computers: list[Computer], *flags: str) -> None:
    """Start the nodes on all computers concurrently, and wait until all are ready."""
    for computer in computers:
        computer.start(*flags)
    waiting = [threading.Thread(target=computer.wait) for computer in computers]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join()
