"""`python -m bench.json_schema_cost MODEL`: the cost of a JSON schema, from answers with and without one."""

from __future__ import annotations

import argparse
import http.client
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.children import Children, Place
from bench.parts.api import opened
from bench.pool_side import Node

ROUNDS, N_TOKENS = 7, 64
ASK: dict[str, Any] = {
    "messages": [{"role": "user", "content": "List the rooms of a house, and what is in each of them."}],
    "max_tokens": N_TOKENS, "temperature": 0, "stream": True, "stream_options": {"include_usage": True},
}  # fmt: skip
ITEM = {
    "type": "object",
    "properties": {"room": {"type": "string"}, "things": {"type": "array", "items": {"type": "string"}}},
    "required": ["room", "things"],
    "additionalProperties": False,
}
SCHEMA = {
    "type": "object",
    "properties": {"rooms": {"type": "array", "items": ITEM, "minItems": 20}},
    "required": ["rooms"],
    "additionalProperties": False,
}
FORM = {"response_format": {"type": "json_schema", "json_schema": {"name": "rooms", "schema": SCHEMA}}}


def ask(base: str, key: str, body: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds until the first text, and the tokens per second after that."""
    connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=300)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    begun, times, n_tokens = time.perf_counter(), list[float](), 0
    connection.request("POST", "/v1/chat/completions", json.dumps(body).encode(), headers)
    with connection.getresponse() as answer:
        while line := answer.readline():
            if line.startswith(b"data: {"):
                chunk = json.loads(line[6:])
                n_tokens = (chunk.get("usage") or {}).get("completion_tokens", n_tokens)
                if chunk["choices"] and chunk["choices"][0]["delta"].get("content"):
                    times.append(time.perf_counter())
    return times[0] - begun, (n_tokens - 1) / (times[-1] - times[0])


def main() -> None:
    words = argparse.ArgumentParser(prog="python -m bench.json_schema_cost", description=__doc__)
    words.add_argument("model", type=Path)
    words.add_argument("--rounds", type=int, default=ROUNDS)
    options = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="poolhouse-forms") as folder, Children(Path(folder)) as family:
        node = Node(family, "forms", Path(folder) / "home", Place())
        path = str(options.model.absolute())
        node.control.finish("/models", {"path": path, "name": "model"})
        node.control.finish("/load", {"model": "model", "shape": "one"})
        base, keys = opened(node)
        kinds = {"plain": ASK, "form": ASK | FORM}
        figures: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
        for turn in range(options.rounds + 1):  # the first is a warm-up
            for kind, body in kinds.items():
                answer = ask(base, keys[0], body)
                if turn:
                    figures[kind].append(answer)
    for kind, each in figures.items():
        first, rate = ([pair[at] for pair in each] for at in (0, 1))
        print(
            f"{kind}: first words after {1000 * median(first):.0f} ms "
            f"({1000 * min(first):.0f} to {1000 * max(first):.0f}), then {median(rate):.1f} tok/s "
            f"({min(rate):.1f} to {max(rate):.1f})"
        )
    ratios = [form[1] / plain[1] for plain, form in zip(figures["plain"], figures["form"], strict=True)]
    print(f"with a form to without, turn by turn: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
