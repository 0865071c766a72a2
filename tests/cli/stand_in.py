"""A program that looks like a node to the demo: ready line, control API, ends with its input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.cli.answers import ATTIC, DEN, LOADED, MACHINES, MODELS, SNAPSHOT, progress, streamed
from tests.cli.fake_node import FakeNode, Lines

WINDOW = {"code": "042137", "address": "127.0.0.1:4243", "seconds": 120, "tries": 3}
ONLINE = {**SNAPSHOT, "machines": {key: MACHINES[key] for key in (DEN, ATTIC)}}
ALONE = {**SNAPSHOT, "machines": {DEN: MACHINES[DEN]}}


def main(home: Path, name: str, builtin: bool) -> None:
    """Serve until standard input ends."""
    looks: list[Any] = [ALONE]  # the link comes up a moment after pairing

    def load(body: Any) -> Lines:
        loaded = LOADED | ({"reasons": ["A program chose this split."]} if body["by_program"] else {})
        return Lines([progress("loading", 1, 2, name), {"done": {"loaded": loaded}}])

    answers: Any = {
        ("POST", "/pairing"): WINDOW,
        ("GET", "/pairing/wait"): Lines([{"done": {"machine": {"id": ATTIC, "name": "attic-pc"}}}]),
        ("POST", "/pairing/join"): {"machine": {"id": DEN, "name": "den-pc"}},
        ("GET", "/status"): lambda body: looks.pop() if looks else ONLINE,
        ("GET", "/models"): {"models": MODELS if builtin else MODELS[1:]},
        ("POST", "/load"): load,
        ("POST", "/ask"): streamed("Open Pool", " and press Add."),
    }
    with FakeNode(home, answers):
        print(json.dumps({"id": name, "name": name, "peer_port": 1, "control_port": 2}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "with-model")
