"""Clients of a Chat API: many at once for a while, and one alone with a clock at each token."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

PATH = "/api/chat"  # its last line tells the driver's own figures
METRICS, AT_DRIVER = "/metrics", "poolhouse_request_to_driver_seconds"
NANOSECONDS = 1e9


@dataclass(slots=True)
class Load:
    """The outcome of many clients."""

    answers: dict[str, int] = field(default_factory=dict)  # whole ones, by key
    lost: list[str] = field(default_factory=list)  # why, of each that was not answered
    tokens: int = 0
    waits_s: list[float] = field(default_factory=list)  # to the first token


@dataclass(frozen=True, slots=True)
class Alone:
    """One answer with nothing beside it, in seconds."""

    and_back_s: float  # from the request to its first line, less what the driver took for it
    per_token_s: float  # from line to line, less what the driver took from token to token


async def many(base: str, keys: Sequence[str], clients: int, seconds: float, max_tokens: int) -> Load:
    """Run many clients, several with each key, each sending one request after another until the time is over."""
    load, end = Load(dict.fromkeys(keys, 0)), time.monotonic() + seconds
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(base, connector=connector) as session, asyncio.TaskGroup() as group:
        for number in range(clients):
            work = _client(session, load, keys[number % len(keys)], end, max_tokens)
            group.create_task(work, name=f"client {number}")
    return load


async def alone(base: str, key: str, runs: int, max_tokens: int) -> list[Alone]:
    """One request after another."""
    async with aiohttp.ClientSession(base) as session:
        return [await _timed(session, key, number, max_tokens) for number in range(runs)]


async def at_driver(base: str, key: str, within_s: float) -> tuple[int, int]:
    """Return how many requests reached the driver within this time, by the node's own count, and how many in all."""
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
    """Each asks something else, so that nothing is reused."""
    began, times, last = time.monotonic(), list[float](), dict[str, Any]()
    async with session.post(PATH, **_ask(key, max_tokens, f"{number}: ")) as answer:
        answer.raise_for_status()
        async for line in answer.content:
            times.append(time.monotonic())
            last = json.loads(line)
    and_back = times[0] - began - last["prompt_eval_duration"] / NANOSECONDS
    # the last line tells the end alone
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
    """Return how many fewer answers the last key got than the first, as a share of the first."""
    return 1 - min(answers) / max(answers) if answers and max(answers) else 1.0


def growth(samples: Sequence[float]) -> float:
    """Return the growth from the second quarter to the last, by their means, as a share: the first one warms up."""
    quarter = len(samples) // 4
    if not quarter:
        raise ValueError("four samples at least")
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    return (sum(late) / len(late)) / (sum(early) / len(early)) - 1
