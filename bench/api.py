"""The Chat API with 64 clients at once: none lost, fair, memory flat; and what it adds to an answer alone."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from statistics import median

from bench import report
from bench.api_load import Load, alone, at_driver, growth, many, unfairness
from bench.children import Place
from bench.figures import percentile
from bench.idle import sizes
from bench.job import Bench, say
from bench.pool import Node

TITLE = "The Chat API"
CLIENTS, KEYS = 64, 8
MOST_UNFAIR, MOST_GROWTH = 0.2, 0.05
DRIVER_BAR_S, TOKEN_BAR_S = 0.003, 0.001
ANSWER_TOKENS, ALONE_TOKENS, ALONE_RUNS = 16, 64, 50
SAMPLE_SECONDS = 0.5


def api(bench: Bench) -> None:
    """The Guide on one node, asked as Ollama's programs ask, because those answers tell the driver's figures."""
    seconds = bench.options.api_seconds
    with bench.family() as family:
        node = Node(family, "api", bench.homes / "api", Place())
        base, keys = opened(node)
        say(f"api: one client, {ALONE_RUNS} answers")
        asyncio.run(alone(base, keys[0], 1, ALONE_TOKENS))  # the first one loads
        before = asyncio.run(at_driver(base, keys[0], DRIVER_BAR_S))
        single = asyncio.run(alone(base, keys[0], ALONE_RUNS, ALONE_TOKENS))
        after = asyncio.run(at_driver(base, keys[0], DRIVER_BAR_S))
        say(f"api: {CLIENTS} clients for {seconds:.0f} s")
        with watched(node) as memory:
            load = asyncio.run(many(base, keys, CLIENTS, seconds, ANSWER_TOKENS))
    quick, n = (late - early for early, late in zip(before, after, strict=True))
    and_back, per_token = ([getattr(figures, name) for figures in single] for name in ("and_back_s", "per_token_s"))
    data = {"load": asdict(load) | {"answers": list(load.answers.values())}, "memory_bytes": memory,
            "at_driver_in_time": quick, "and_back_s": and_back, "per_token_s": per_token}  # fmt: skip
    rows = [*_of_many(load, memory), *_of_one(quick / n, and_back, per_token)]
    about = f"{CLIENTS} clients with {KEYS} keys for {seconds:.0f} s, then {len(single)} answers alone"
    bench.add("api", data, f"## {TITLE}: {about}\n\n{report.table(['', 'found', 'bar', 'holds'], rows)}")


def opened(node: Node) -> tuple[str, list[str]]:
    """Open the API of a node; return its address, and a key for each program."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    answer = node.control.request("POST", "/api", {"on": True, "port": port})
    names = [f"program-{number}" for number in range(KEYS)]
    keys = [node.control.request("POST", "/api/keys", {"name": name})["key"] for name in names]
    return f"http://127.0.0.1:{answer['listens_at']}", keys


@contextmanager
def watched(node: Node) -> Iterator[list[float]]:
    """Bytes that the node and its workers hold, at each look."""
    looks, over = list[float](), threading.Event()

    def look() -> None:
        while not over.wait(SAMPLE_SECONDS):
            looks.append(float(sum(sizes(process)[0] for process in node.child.family())))

    thread = threading.Thread(target=look, name="look at memory")
    thread.start()
    try:
        yield looks
    finally:
        over.set()
        thread.join()


def _of_many(load: Load, memory: list[float]) -> list[list[str]]:
    total, unfair, grown = (sum(load.answers.values()), unfairness(list(load.answers.values())), growth(memory))
    waits = sorted(load.waits_s)
    return [
        ["answers", f"{total}, {load.tokens} tokens", "", ""],
        ["first token, median and 99th percentile", f"{percentile(waits, 0.5):.2f} s, {percentile(waits, 0.99):.2f} s",
         "", ""],
        ["lost", str(len(load.lost)), "0", _holds(not load.lost)],
        ["between the keys", f"{100 * unfair:.1f} %", f"{100 * MOST_UNFAIR:.0f} %", _holds(unfair <= MOST_UNFAIR)],
        ["memory grew by", f"{100 * grown:.1f} %", f"{100 * MOST_GROWTH:.0f} %", _holds(grown <= MOST_GROWTH)],
    ]  # fmt: skip


def _of_one(quick: float, and_back: list[float], per_token: list[float]) -> list[list[str]]:
    token = median(per_token)
    return [
        [f"requests at the driver within {1000 * DRIVER_BAR_S:.0f} ms", f"{100 * quick:.0f} %", "half",
         _holds(quick > 0.5)],
        ["to the driver and back to the program, median", f"{1000 * median(and_back):.2f} ms", "", ""],
        ["streaming adds to a token, median", f"{1000 * token:.3f} ms", f"{1000 * TOKEN_BAR_S:.0f} ms",
         _holds(token < TOKEN_BAR_S)],
    ]  # fmt: skip


def _holds(holds: bool) -> str:
    return "yes" if holds else "NO"
