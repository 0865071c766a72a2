"""Sieges: attacks on every port of a host and its lender while they answer, and what they do to the answer."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

import psutil

from app.client import NodeClient
from app.core.errors import AppError
from tests.faults.household import ORDER
from tests.faults.outcome import Outcome, quantile
from tests.gateway.conftest import free_port
from tests.node.pool import TestNode, paired

Json = dict[str, Any]
HOST, LENDER = "den", "attic"
LOAD = {"model": "guide", "split": [2, 4, 2], "number": "f32"}
LONG = ORDER | {"max_tokens": 600}
REST_SECONDS = 0.0  # between two answers
QUIET_SECONDS = 5.0  # of undisturbed answers, for comparison
STALL_BAR_S = 0.05  # above the undisturbed, at the 99th percentile
GROWTH_BAR_BYTES = 16 << 20  # from a tenth of the siege to its end: before that, buffers fill once
REMOVED_BAR_S = 2.0
MANY = 200  # tries: fewer are one siege, without a first tenth
PAIRING_TRIES = 2000  # while one window is open
PHASE = "while it answers"
PORTS = ("host's peer port", "lender's peer port", "host's control port", "host's Chat API")
GARBAGE, AT_PAIRING = "garbage connections", "garbage connections, pairing window"
FRAMES = "malformed frames and messages of a member"
UNPAIRED = "unpaired, removed and minted certificates"


@dataclass
class Stronghold:
    """A host and a lender that answer all the time, and how long their reader waited for each token."""

    folder: Path
    nodes: dict[str, TestNode]
    gaps: list[float] = field(default_factory=list)
    expected: list[int] = field(default_factory=list)
    n_heard: int = 0  # tokens
    wrong: str = ""

    def host(self) -> NodeClient:
        return self.nodes[HOST].client()

    def id_of(self, name: str) -> str:
        return str(self.nodes[name].ready["id"])

    def memory(self) -> int:
        """Return the memory of both nodes' processes. The workers are not attacked."""
        nodes = (psutil.Process(node.process.pid) for node in self.nodes.values())
        return sum(node.memory_info().rss for node in nodes)

    async def answer(self) -> None:
        """One answer after another, until cancelled."""
        async with self.host() as host:
            while True:
                await self._one(host)
                await asyncio.sleep(REST_SECONDS)

    async def _one(self, host: NodeClient) -> None:
        ids, times = [], []
        try:
            async with aclosing(host.stream("POST", "/ask", LONG)) as lines:
                async for line in lines:
                    if "delta" in line:
                        times.append(monotonic())
                        self.n_heard += len(line["delta"]["token_ids"])
                        self.gaps += [b - a for a, b in pairwise(times[-2:])]
                        ids += line["delta"]["token_ids"]
        except AppError as error:
            self.wrong = f"an answer ended with {error.reason.code}"
        self.expected = self.expected or ids
        if ids != self.expected:
            self.wrong = self.wrong or "an answer says something else"

    async def attack(self, kind: str, **order: Any) -> Json:
        """Carried out by a process of its own. Raises AssertionError with its last words."""
        words = json.dumps({"seed": random.randrange(1 << 30)} | order)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.faults.attackers", kind, words,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        assert process.returncode == 0, err.decode(errors="replace")[-2000:]
        return dict(json.loads(out))

    def new_folder(self) -> str:
        return str(self.folder / f"attack-{random.randrange(1 << 40)}")

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        self.gaps.clear()
        self.wrong = ""
        answering = asyncio.create_task(self.answer())  # noqa: TID251  ended below
        try:
            yield
        finally:
            answering.cancel()
            await asyncio.wait({answering})

    def alive(self) -> str:
        """Return what has come to harm."""
        dead = [name for name, node in self.nodes.items() if node.process.poll() is not None]
        faults = [name for name, node in self.nodes.items() if _bugs(node)]
        if dead:
            return f"{', '.join(dead)} ended"
        return f"{', '.join(faults)} logged a bug" if faults else self.wrong


def _bugs(node: TestNode) -> bool:
    words = (node.root / "stderr.txt").read_text("utf-8", "replace")
    return "Traceback" in words or "never retrieved" in words


@contextmanager
def stronghold(folder: Path) -> Iterator[Stronghold]:
    with paired(folder / "nodes", HOST, LENDER) as nodes:
        yield Stronghold(folder, dict(zip((HOST, LENDER), nodes, strict=True)))


async def ready(hold: Stronghold) -> None:
    """The model is loaded, the Chat API listens; its key is made."""
    async with hold.host() as host:
        await host.work("POST", "/load", LOAD)
        await host.post("/api", {"on": True, "port": free_port()})
        await host.post("/api/keys", {"name": "siege"})
        await hold._one(host)


async def ports(hold: Stronghold) -> dict[str, int]:
    """All that listen, but the pairing window."""
    async with hold.host() as host:
        api = int((await host.get("/api"))["listens_at"])
    nodes = hold.nodes
    results = (
        nodes[HOST].ready["peer_port"], nodes[LENDER].ready["peer_port"],
        nodes[HOST].ready["control_port"], api,
    )  # fmt: skip
    return dict(zip(PORTS, results, strict=True))


async def garbage(hold: Stronghold, where: str, port: int, n: int) -> Outcome:
    """S1 at one port."""

    async def attack(n: int) -> str:
        result = (await hold.attack("garbage", port=port, n=n))["found"]
        served = result.get("served", 0)
        return f"{served} of {n} were served" if served else _reached(result, n)

    return await _sieged(hold, "S1", f"{GARBAGE}, {where}", n, attack)


async def garbage_at_pairing(hold: Stronghold, n: int) -> Outcome:
    """S1 at the pairing window, opened anew when its time is over; then somebody pairs through it."""

    async def attack(n: int) -> str:
        async with hold.host() as host:
            for start in range(0, n, PAIRING_TRIES):
                window = await host.post("/pairing", {})
                port, few = int(window["address"].rpartition(":")[2]), min(PAIRING_TRIES, n - start)
                result = (await hold.attack("garbage", port=port, n=few))["found"]
                if result.get("served") or (why := _reached(result, few)):
                    return why or "somebody was served"
                await host.delete("/pairing")
        return ""

    return await _sieged(hold, "S1", AT_PAIRING, n, attack)


def _reached(result: Json, n: int) -> str:
    missed = result.get("no connection", 0)
    return f"{missed} of {n} found no port" if missed > n // 100 else ""


async def frames(hold: Stronghold, victim: str, n: int) -> Outcome:
    """S2: a member's malformed frames and messages."""

    async def attack(n: int) -> str:
        where, host = hold.new_folder(), str(hold.nodes[HOST].root)
        got = await hold.attack("frames", folder=where, host=host, victim=hold.id_of(victim), n=n)
        rest = {kind: n for kind, n in got["found"].items() if kind != "dropped"}
        return f"not dropped: {rest}" if rest else ""

    name = "host" if victim == HOST else "lender"
    return await _sieged(hold, "S2", f"{FRAMES}, {name}", n, attack)


async def unpaired(hold: Stronghold, n: int) -> Outcome:
    """S6: everybody who must not get in."""
    closed: list[float] = []

    async def attack(n: int) -> str:
        where, host = hold.new_folder(), str(hold.nodes[HOST].root)
        got = await hold.attack("unpaired", folder=where, host=host, victim=hold.id_of(HOST), n=n)
        closed.append(got["closed_s"])
        rest = {kind: n for kind, n in got["found"].items() if kind != "refused"}
        return f"not refused: {rest}" if rest else ""

    outcome = await _sieged(hold, "S6", UNPAIRED, n, attack)
    outcome.facts["removed_closed_s"] = max(closed, default=0.0)
    soon = outcome.facts["removed_closed_s"] <= REMOVED_BAR_S
    return replace(outcome, in_time=outcome.in_time and soon)


async def _sieged(hold: Stronghold, row: str, name: str, n: int, attack: Callable[[int], Any]) -> Outcome:
    """A tenth of it, then the rest: what the answer, the memory and the processes say to that."""
    async with hold.answering():
        await asyncio.sleep(QUIET_SECONDS)
    usual_s, before = quantile(hold.gaps, 0.99) or 0.0, hold.memory()
    async with hold.answering():
        began = monotonic()
        first = n // 10 if n >= MANY else 0
        why = await attack(first) if first else ""
        tenth = hold.memory()
        why = await attack(n - first) or why
        after, took_s = hold.memory(), monotonic() - began
    stalled_s = quantile(hold.gaps, 0.99) or 0.0
    facts = {
        "n": float(n), "usual_p99_s": usual_s, "p99_s": stalled_s, "worst_s": max(hold.gaps, default=0.0),
        "before_bytes": before, "tenth_bytes": tenth, "after_bytes": after, "took_s": took_s,
        "tokens": float(len(hold.gaps)),
    }  # fmt: skip
    why = hold.alive() or why
    if not why and after - tenth > GROWTH_BAR_BYTES:
        why = f"memory grew by {(after - tenth) >> 20} MiB after the first tenth"
    if not why and not hold.gaps:
        why = "nothing was answered meanwhile"
    in_time = not why and stalled_s <= usual_s + STALL_BAR_S
    return Outcome(row, name, PHASE, not why, why, in_time=in_time, facts=facts)
