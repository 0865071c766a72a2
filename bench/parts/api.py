"""The Chat API under 64 concurrent clients (losses, fairness, memory), and its overhead for a single answer."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import aiohttp

from bench import report
from bench.children import Place
from bench.figures import percentile
from bench.job import Bench, say
from bench.parts.idle import sizes
from bench.pool_side import Node

TITLE = "The Chat API"
CLIENTS, KEYS = 64, 8
MOST_UNFAIR, MOST_GROWTH = 0.2, 0.05
DRIVER_BAR_S, TOKEN_BAR_S = 0.003, 0.001
ANSWER_TOKENS, ALONE_TOKENS, ALONE_RUNS = 16, 64, 50
SAMPLE_SECONDS = 0.5
PATH = "/api/chat"  # its last line contains the driver's own figures
METRICS, AT_DRIVER = "/metrics", "poolhouse_request_to_driver_seconds"
NANOSECONDS = 1e9


@dataclass(slots=True)
class Load:
    """The outcome of a run with many clients."""

    answers: dict[str, int] = field(default_factory=dict)  # complete answers by key
    lost: list[str] = field(default_factory=list)  # reason for each missing answer
    tokens: int = 0
    waits_s: list[float] = field(default_factory=list)  # to the first token


@dataclass(frozen=True, slots=True)
class Alone:
    """The overhead of the API for one answer without other load, in seconds."""

    and_back_s: float  # from the request to its first line, minus the driver's time
    per_token_s: float  # between lines, minus the driver's time between tokens


async def many(base: str, keys: Sequence[str], clients: int, seconds: float, max_tokens: int) -> Load:
    """Run many clients, several per key. Each sends one request after another until the time is up."""
    load, end = Load(dict.fromkeys(keys, 0)), time.monotonic() + seconds
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(base, connector=connector) as session, asyncio.TaskGroup() as group:
        for number in range(clients):
            work = _client(session, load, keys[number % len(keys)], end, max_tokens)
            group.create_task(work, name=f"client {number}")
    return load


async def alone(base: str, key: str, runs: int, max_tokens: int) -> list[Alone]:
    """Send one request after another, and return the overhead of each."""
    async with aiohttp.ClientSession(base) as session:
        return [await _timed(session, key, number, max_tokens) for number in range(runs)]


async def at_driver(base: str, key: str, within_s: float) -> tuple[int, int]:
    """Return how many requests reached the driver within this time, and how many in total.

    Both numbers come from the node's metrics.
    """
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(base) as session, session.get(METRICS, headers=headers) as got:
        text = await got.text()
    counts = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith(AT_DRIVER))
    within, all_of_them = f'_bucket{{le="{within_s}"}}', "_count"
    return int(float(counts[AT_DRIVER + within])), int(float(counts[AT_DRIVER + all_of_them]))


async def _client(session: aiohttp.ClientSession, load: Load, key: str, end: float, max_tokens: int) -> None:
    while time.monotonic() < end:
        try:
            began, first, last = time.monotonic(), 0.0, dict[str, Any]()
            async with session.post(PATH, **_ask(key, max_tokens)) as answer:
                async for line in answer.content:
                    first = first or time.monotonic()
                    last = json.loads(line)
            if answer.status != 200 or not last.get("done"):
                load.lost.append(f"{answer.status}: {last}")
                continue
            load.answers[key] += 1
            load.tokens += int(last["eval_count"])
            load.waits_s.append(first - began)
        except (aiohttp.ClientError, ValueError, TimeoutError) as error:
            load.lost.append(f"{type(error).__name__}: {error}")


async def _timed(session: aiohttp.ClientSession, key: str, number: int, max_tokens: int) -> Alone:
    """Time one request. Each prompt is different, so that no cached prefix is reused."""
    began, times, last = time.monotonic(), list[float](), dict[str, Any]()
    async with session.post(PATH, **_ask(key, max_tokens, f"{number}: ")) as answer:
        answer.raise_for_status()
        async for line in answer.content:
            times.append(time.monotonic())
            last = json.loads(line)
    and_back = times[0] - began - last["prompt_eval_duration"] / NANOSECONDS
    # the last line contains no token
    spent, between = times[-2] - times[0], max(1, len(times) - 2)
    return Alone(and_back, (spent - last["eval_duration"] / NANOSECONDS) / between)


def _ask(key: str, max_tokens: int, before: str = "") -> dict[str, Any]:
    body = {
        "model": "default",
        "messages": [{"role": "user", "content": f"{before}How do I add a computer?"}],
        "options": {"num_predict": max_tokens, "temperature": 0},
    }
    return {"json": body, "headers": {"Authorization": f"Bearer {key}"}}


def unfairness(answers: Sequence[int]) -> float:
    """Return by what fraction the key with the fewest answers fell behind the key with the most."""
    return 1 - min(answers) / max(answers) if answers and max(answers) else 1.0


def growth(samples: Sequence[float]) -> float:
    """Return the relative growth of the mean from the second to the last quarter. The first quarter is warm-up."""
    quarter = len(samples) // 4
    if not quarter:
        raise ValueError("four samples at least")
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    return (sum(late) / len(late)) / (sum(early) / len(early)) - 1


def api(bench: Bench) -> None:
    """Measure the Guide on one node through its Ollama API, whose answers include the driver's own times."""
    seconds = bench.options.api_seconds
    with bench.family() as family:
        node = Node(family, "api", bench.homes / "api", Place())
        base, keys = opened(node)
        say(f"api: one client, {ALONE_RUNS} answers")
        asyncio.run(alone(base, keys[0], 1, ALONE_TOKENS))  # the first one loads the model
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
    """Open the Chat API of a node. Return its address and one key per program."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    answer = node.control.request("POST", "/api", {"on": True, "port": port})
    names = [f"program-{number}" for number in range(KEYS)]
    keys = [node.control.request("POST", "/api/keys", {"name": name})["key"] for name in names]
    return f"http://127.0.0.1:{answer['listens_at']}", keys


@contextmanager
def watched(node: Node) -> Iterator[list[float]]:
    """Sample the memory used by the node and its workers, in bytes."""
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
