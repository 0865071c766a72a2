"""Four real nodes on this computer, one of them the host, whose processes are killed, stopped and started again."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from app.client import NodeClient
from app.core.errors import AppError
from tests.node.pool import TestNode, node, pair

Json = dict[str, Any]
HOST, LENDERS = "den", ("attic", "kitchen", "study")
SPLIT = [2, 2, 2, 2]  # the host, two lenders, the host: one lender is spare
LOAD = {"model": "guide", "split": SPLIT, "number": "f32"}
PROMPT = "A question about computers at home: how do I add one to the household? " * 5
N_TOKENS = 96
ORDER = {
    "prompt": PROMPT, "raw": True, "max_tokens": N_TOKENS, "ignore_end": True,
    "sampling": {"temperature": 0},
}  # fmt: skip
RETURN_SECONDS = 60.0


class NeverStruck(Exception):
    """The process that should have been struck took no part: the layers went to others this time."""


@dataclass
class Heard:
    """One answer as its reader got it."""

    ids: list[int] = field(default_factory=list)
    deltas_at: list[float] = field(default_factory=list)
    notices: list[tuple[float, Json]] = field(default_factory=list)
    done: Json | None = None
    error: str = ""
    struck_at: float = 0.0  # when the fault was made


@dataclass
class Household:
    """The nodes, and the model that is spread over three of them."""

    folder: Path
    stack: ExitStack
    nodes: dict[str, TestNode] = field(default_factory=dict)
    expected: list[int] = field(default_factory=list)
    usual_gap_s: float = 0.0  # between two tokens, at the 95th percentile

    def begin(self) -> None:
        for name in (HOST, *LENDERS):
            self.start(name)
        for name in LENDERS:
            self.join(name)

    def join(self, name: str) -> None:
        pair(self.nodes[HOST], self.nodes[name])

    def start(self, name: str) -> None:
        self.nodes[name] = self.stack.enter_context(node(self.folder / name, name))

    def client(self) -> NodeClient:
        return self.nodes[HOST].client()

    async def whole(self) -> list[str]:
        """Everybody there, the model on the host and two lenders: their names, in order."""
        ends_at = time.monotonic() + RETURN_SECONDS
        while True:
            await self._started_again()
            async with self.client() as host:
                status = await host.get("/status")
            lend = [m for m in status["machines"].values() if m["online"] and m["lent_bytes"]]
            if {item["name"] for item in lend} >= set(LENDERS):
                break
            assert time.monotonic() < ends_at, f"not all came back: {self._states(status)}"
            await asyncio.sleep(0.1)
        async with self.client() as host:
            loaded = status["loaded"] or {}
            is_whole = loaded.get("state") == "ready" and len(machines(loaded)) == 4
            if not is_whole or not all(self.nodes[name].workers() for name in machines(loaded)):
                loaded = (await host.work("POST", "/load", LOAD))["loaded"]
        if not self.expected:
            await self._undisturbed()
        return machines(loaded)[1:-1]

    async def _started_again(self) -> None:
        """Restart the machines that are gone. It may take a while until the system counts a killed one as dead."""
        for name, test_node in list(self.nodes.items()):
            if _stands_still(test_node.process.pid):
                test_node.process.kill()
                test_node.process.wait()
            if test_node.process.poll() is not None:
                await asyncio.to_thread(self.start, name)

    def _states(self, status: Json) -> list[str]:
        """Return the known state of each machine, to help find the fault."""
        return [
            f"{m['name']}: {'runs' if self.nodes[m['name']].process.poll() is None else 'ended'}, "
            f"{'online' if m['online'] else 'offline'}, lends {m['lent_bytes']}, {m['state']}, {m['reason']}"
            for m in status["machines"].values()
        ]

    async def _undisturbed(self) -> None:
        heard = await self.ask(lambda: None, lambda _: False)
        assert heard.done is not None, heard.error
        self.expected, times = heard.ids, heard.deltas_at
        gaps = sorted(b - a for a, b in pairwise(times))
        self.usual_gap_s = gaps[int(0.95 * len(gaps))]

    async def ask(self, strike: Callable[[], None], when: Callable[[Heard], bool], order: Json = ORDER) -> Heard:
        """One answer, and the fault as soon as `when` says so: asked at the start and after each line."""
        heard = Heard()

        def look() -> None:
            if when(heard) and not heard.struck_at:  # asked to the end: a second fault may follow
                heard.struck_at = time.monotonic()
                strike()

        return await self._answered(heard, look, order)

    async def _answered(self, heard: Heard, look: Callable[[], None], order: Json = ORDER) -> Heard:
        try:
            async with self.client() as host, aclosing(host.stream("POST", "/ask", order)) as lines:
                early = asyncio.create_task(_beside(look))  # noqa: TID251  ended below
                try:
                    async for line in lines:
                        _take(heard, line)
                        look()
                finally:
                    early.cancel()
        except AppError as error:
            heard.error = error.reason.code
        return heard

    async def lost(self, heard: Heard, *, may_be_away: bool = False) -> str:
        """Return the machines wrongly taken for dead. With `may_be_away`, one may be missing for a moment."""
        if (heard.done or {}).get("recoveries"):
            return "a machine was given up that lived"
        if may_be_away:
            return ""
        async with self.client() as host:
            status = await host.get("/status")
        offline = [m["name"] for m in status["machines"].values() if not m["online"]]
        return f"{', '.join(offline)} counted as lost" if offline else ""

    async def forget(self) -> None:
        """Nothing is loaded any more, and nothing known of how it went; `whole` loads it again."""
        async with self.client() as host:
            await host.post("/unload")

    async def load_measured(self) -> list[str]:
        """Load as in `whole`, after every machine's speed was measured, so that there is a forecast."""
        await self.forget()
        async with self.client() as host:
            loaded = (await host.work("POST", "/load", LOAD | {"measure": True}))["loaded"]
        return machines(loaded)[1:-1]

    async def load_anew(self, strike: Callable[[], None]) -> Heard:
        """The fault while the model is loaded, and then one answer."""
        heard = Heard()
        async with self.client() as host:
            await host.post("/unload")
            try:
                async with aclosing(host.stream("POST", "/load", LOAD)) as lines:
                    async for line in lines:
                        step = line.get("progress", {}).get("step")
                        if step == "loading" and not heard.struck_at:
                            await self._struck(strike)
                            heard.struck_at = time.monotonic()
            except AppError as error:
                heard.error = error.reason.code
                return heard
        return await self._answered(heard, lambda: None)

    async def _struck(self, strike: Callable[[], None]) -> None:
        """Strike as soon as the process exists."""
        for _ in range(500):
            try:
                return strike()
            except (ValueError, psutil.NoSuchProcess):
                await asyncio.sleep(0.01)
        raise NeverStruck

    def worker(self, name: str) -> psutil.Process:
        """The process that computes there: the host's text worker is the smaller one. Raises ValueError without one."""
        result: dict[psutil.Process, int] = {}
        for worker in self.nodes[name].workers():
            with suppress(psutil.Error):  # it ends in this moment: of what was loaded before
                result[worker] = worker.memory_info().rss
        return max(result, key=result.__getitem__)


async def _beside(look: Callable[[], None]) -> None:
    """Run this while the lines arrive, and while none does."""
    while True:
        look()
        await asyncio.sleep(0.005)


def _take(heard: Heard, line: Json) -> None:
    now = time.monotonic()
    if "delta" in line:
        heard.ids += line["delta"]["token_ids"]
        heard.deltas_at.append(now)
    elif "recovery" in line:
        heard.notices.append((now, line["recovery"]))
    elif "done" in line:
        heard.done = line["done"]


def machines(loaded: Json) -> list[str]:
    return [stage["machine"] for stage in loaded.get("stages") or ()]


def kill(process: psutil.Process) -> None:
    process.send_signal(signal.SIGKILL)


def pause(process: psutil.Process, seconds: float) -> None:
    """Stop it, and let it go on later; never, if that is endless."""
    process.send_signal(signal.SIGSTOP)
    if seconds != float("inf"):
        asyncio.get_running_loop().call_later(seconds, _go_on, process)


def _stands_still(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False


def _go_on(process: psutil.Process) -> None:
    if process.is_running():
        process.send_signal(signal.SIGCONT)


@contextmanager
def together(folder: Path, kind: type[Household] = Household) -> Iterator[Household]:
    """A household until the end of the block."""
    os.environ["POOLHOUSE_KEYSTORE"] = "file"
    with ExitStack() as stack:
        made = kind(folder, stack)
        made.begin()
        try:
            yield made
        finally:
            for test_node in made.nodes.values():  # what is stopped cannot end
                if test_node.process.poll() is None:
                    _go_on(psutil.Process(test_node.process.pid))
