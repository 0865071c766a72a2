"""Two real nodes, a broken file that one of them loads over both, and what is told of it."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from app.client import NodeClient
from app.core.errors import AppError, Reason
from app.core.reasons import said
from app.core.recovery import fault_table
from app.core.recovery.fault_table import Fault
from tests.broken.files import KINDS, broken
from tests.families import proof
from tests.families.fixtures import families
from tests.node.pool import TestNode, paired

Json = dict[str, Any]
Meanwhile = Callable[[Path], None]
HOST, LENDER = "den", "attic"
GUIDE = Path("resources/guide.gguf")
SOURCES = ("guide", "llama", "qwen3", "gemma2", "qwen3-moe", "qwen3-5", "gpt-oss", "falcon-h1")
GOOD = "llama"
QUICK = ("import", "plan", "answered")
ALONE = 0.25  # of the files are loaded on one machine
RUN_S, USUAL_S = 60.0, 20.0  # a run's end at the latest; what a run must not take
# Whose fault a broken file may be told as.
OF_THE_FILE = frozenset({Fault.MODEL, Fault.ENGINE, Fault.REQUEST, Fault.MEMORY})
BLAMES = re.compile(
    rf"\b({HOST}|{LENDER})\b[^.]*\b(lost|reconnect|stopped responding|stopped computing)|lost "
    rf"({HOST}|{LENDER})\b|rebuil",
    re.IGNORECASE,
)
ORDER = {"raw": True, "prompt": "one two", "max_tokens": 6, "ignore_end": True, "sampling": {"temperature": 0}}


@dataclass
class Told:
    """The outcome of one broken file, and what is wrong with the report about it."""

    seed: int
    what: str
    end: str = ""  # of the step that ended it, and with which code
    sentence: str = ""
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


def source(name: str) -> Path:
    return GUIDE if name == "guide" else families()[name].path


def read_split(path: Path) -> list[int] | None:
    """Return a split over the host, the lender and the host again, if legal: random, but always the same."""
    model = model_of(read_header(path), "x", "0" * 64)
    cuts = proof.threes(model)
    return [len(layers) for layers, _ in proof.runs(model.n_layers, cuts[0])] if cuts else None


@dataclass
class Household:
    """The nodes, and what they say to a good model."""

    folder: Path
    nodes: list[TestNode]
    expected: list[int] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.folder.absolute() / "broken.gguf"

    def client(self) -> NodeClient:
        return self.nodes[0].client()

    async def begin(self) -> None:
        async with self.client() as host:
            await host.work("POST", "/models", {"path": str(source(GOOD).absolute()), "name": "good"})
        assert not await self.good()

    async def good(self) -> str:
        """Load the good model over both and ask it; what is wrong."""
        order = {"model": "good", "split": read_split(source(GOOD)), "number": "f32"}
        try:
            async with self.client() as host, asyncio.timeout(RUN_S):
                await host.work("POST", "/load", order)
                ids, notices = await asked(host, "good")
        except AppError as error:
            return f"a good model afterwards: {said(error)}"
        except TimeoutError:
            return "a good model afterwards: no end"
        self.expected = self.expected or ids
        if ids != self.expected or notices:
            return f"a good model afterwards says {ids} and {notices}"
        return ""

    async def run(self, seed: int, kinds: Sequence[str] = KINDS) -> Told:
        """One file broken by chance, from its import to an answer, as far as it comes; then the good one."""
        chance = Random(seed)
        name = chance.choice(SOURCES)
        result = Told(seed, f"{name}: {broken(source(name), self.path, seed, kinds)}")
        return await self.tell(result, alone=chance.random() < ALONE)

    async def tell(self, result: Told, *, alone: bool, meanwhile: Meanwhile = lambda _: None) -> Told:
        """Return the report about the file at `path`. `meanwhile` is applied to it between its plan and its load."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(RUN_S):
                await self._tried(result, alone, meanwhile)
        except TimeoutError:
            result.wrong.append(f"no end after {result.end}")
        result.seconds = time.monotonic() - began
        if result.seconds > USUAL_S:
            result.wrong.append(f"took {result.seconds:.0f} s")
        is_quick = result.end.split(":")[0] in QUICK and result.seed % 10
        if (result.wrong or not is_quick) and (bad := await self.good()):
            result.wrong.append(bad)
        await self._cleared(result)
        return result

    async def _tried(self, result: Told, alone: bool, meanwhile: Meanwhile) -> None:
        async with self.client() as host:
            try:
                result.end = "import"
                await host.work("POST", "/models", {"path": str(self.path), "name": "broken"})
                runs = read_split(self.path)
                where: Json = {"shape": "one"} if alone or not runs else {"split": runs}
                order = {"model": "broken", **where}
                if result.seed % 3:
                    order["measure"] = False
                result.end = "plan"
                await host.work("POST", "/plan", order)
                meanwhile(self.path)
                result.end = "load" + (" alone" if "shape" in where else "")
                await host.work("POST", "/load", order)
                result.end = "ask"
                _, notices = await asked(host, "broken")
                result.end = "answered"
                if notices:
                    result.wrong.append(f"told meanwhile: {notices}")
            except AppError as error:
                self._judge(result, error)

    def _judge(self, result: Told, error: AppError) -> None:
        reason = error.reason
        result.sentence = said(error)
        fault = fault_table.classify(reason).fault
        if reason.code == "lender_said":
            fault = fault_table.classify(Reason(fault_table.cause_code(reason))).fault
            result.end += f": {fault_table.cause_code(reason)} there"
        else:
            result.end += f": {reason.code}"
        if fault not in OF_THE_FILE:
            result.wrong.append(f"told as the fault of {fault}")
        if BLAMES.search(result.sentence):
            result.wrong.append("names a machine as lost")
        if "bug" in reason.code:
            result.wrong.append("a fault of ours")

    async def _cleared(self, result: Told) -> None:
        async with self.client() as host:
            status = await host.get("/status")
            with suppress(AppError):  # it was not even taken
                await host.delete("/models/broken")
        for machine in status["machines"].values():
            if machine["name"] == LENDER and not machine["online"]:
                result.wrong.append(f"{LENDER} is not online: {machine['reason']}")
        for node in self.nodes:
            words = (node.root / "stderr.txt").read_text("utf-8", "replace")
            (node.root / "stderr.txt").write_text("")
            if "Traceback" in words or "never retrieved" in words:
                at = words.find("Traceback")
                result.wrong.append(f"{node.name} logged a bug: {words[at : at + 3000]}")


async def asked(host: NodeClient, model: str) -> tuple[list[int], list[str]]:
    """Tokens and notices of one answer. Raises AppError."""
    ids: list[int] = []
    notices: list[str] = []
    async with aclosing(host.stream("POST", "/ask", ORDER | {"model": model})) as lines:
        async for line in lines:
            if "delta" in line:
                ids += line["delta"]["token_ids"]
            elif "recovery" in line:
                notices.append(line["recovery"]["text"])
    return ids, notices


@contextmanager
def household(folder: Path) -> Iterator[Household]:
    """Run the household until the end of the block."""
    os.environ["POOLHOUSE_KEYSTORE"] = "file"
    with paired(folder, HOST, LENDER) as nodes:
        yield Household(folder, nodes)
