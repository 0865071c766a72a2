"""The laboratory: a host, an honest lender and a patched one as real nodes, and hostile members beside."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from app.client import NodeClient
from app.core.errors import AppError
from app.core.ids import MachineId
from app.network.sockets import Address
from tests.faults.household import Heard, _take
from tests.faults.mole import joined
from tests.faults.outcome import Kind, Outcome
from tests.hostile import admin, guest, host, lender, strangers
from tests.hostile.attacker import LendsNothing
from tests.network.nodes import Node, Nodes, opened, until
from tests.node.pool import TestNode, node

Json = dict[str, Any]
HOST, HONEST, LIAR = "den", lender.INNOCENT, "attic"
NAMES = (HOST, HONEST, LIAR)
LOAD = {"model": "guide", "split": [2, 2, 2, 2], "number": "f32"}
N_TOKENS = 48
ORDER = {
    "prompt": "What does pairing protect? " * 6, "raw": True,  # no token of whose answer is decided by rounding
    "max_tokens": N_TOKENS, "ignore_end": True, "sampling": {"temperature": 0},
}  # fmt: skip
ATTACK_SECONDS, END_SECONDS, BACK_SECONDS, LOAD_SECONDS = 4.0, 120.0, 30.0, 60.0
PATIENCE_SECONDS = 8.0  # of who waits for a load
LINKED_SECONDS = 2.0  # else who should be is cut off
BACK_BAR_S = 10.0
PORTS = 20_000, 30_000  # below those that systems give to outgoing connections
GROWTH_BAR_BYTES = 256 << 20  # of all nodes together, from the first run on
# What is said of a machine that is not at fault.
NO_BLAME = frozenset(
    {"recovery_continued", "recovery_reconnected", "recovery_joining", "recovery_better", "recovery_moving"}
)
ROLES: dict[str, tuple[str, ...]] = {
    "lender": tuple(lender.LIES), "host": tuple(host.ATTACKS), "guest": tuple(guest.ATTACKS),
    "stranger": strangers.NAMES, "admin": tuple(admin.ATTACKS),
}  # fmt: skip


def kinds() -> list[Kind]:
    """Every kind of hostility, by who does it."""
    return [(role, name, "") for role, names in ROLES.items() for name in names]


@dataclass
class Lab:
    """One household for many runs. What a run needs that is gone is made again before it."""

    folder: Path
    stack: ExitStack
    nodes: dict[str, TestNode] = field(default_factory=dict)
    expected: list[int] = field(default_factory=list)
    attacker: asyncio.subprocess.Process | None = None
    ports: dict[str, int] = field(default_factory=dict)  # of members: whoever starts again keeps its own
    used_bytes: int = 0  # by the nodes when all began
    read: dict[str, int] = field(default_factory=dict)  # of each node's log
    others: list[str] = field(default_factory=list)  # ids of members that hold no layers

    async def begin(self) -> None:
        for name in NAMES:
            await asyncio.to_thread(self.start, name)
        for name in NAMES[1:]:
            await self._pair(name)
        async with opened(self.folder / "porch") as nodes:
            porch = await self._porch(nodes)
            async with porch.network:
                await joined(porch, self.nodes[HOST].root)

    def start(self, name: str) -> None:
        launch = () if name != LIAR else (sys.executable, "-m", "tests.hostile.lender", str(self._lie), "--")
        port = self.ports.setdefault(name, free_port())
        made = self.stack.enter_context(node(self.folder / name, name, launch=launch, port=port))
        self.nodes[name] = replace(made, launch=())

    @property
    def _lie(self) -> Path:
        return self.folder / "lie.json"

    @property
    def lie_is_told(self) -> bool:
        """Return whether the liar had occasion to lie."""
        return lender.told_file(self._lie).exists()

    @property
    def load(self) -> Json:
        """Load the model on the host and both lenders, whoever else is a member."""
        return LOAD | {"without": self.others}

    def client(self) -> NodeClient:
        return self.nodes[HOST].client()

    async def _pair(self, name: str) -> None:
        async with self.client() as admin_of, self.nodes[name].client() as other:
            window = await admin_of.post("/pairing", {"role": "use_and_lend"})
            await other.post("/pairing/join", {"address": window["address"], "code": window["code"]})

    async def tell(self, lie: str, seed: int) -> None:
        """The liar tells it from now on."""
        self._lie.write_text(json.dumps({"lie": lie, "seed": seed}), "utf-8")
        self.nodes[LIAR].process.send_signal(signal.SIGUSR1)
        await until(lambda: not self._lie.exists(), 30.0)

    async def whole(self) -> None:
        """All are there, and the model is on three of them. Raises AssertionError where a node does not start."""
        for name, test_node in list(self.nodes.items()):
            if test_node.process.poll() is not None:
                await self._start_again(name)
        try:
            status = await self._linked(LINKED_SECONDS)
        except AssertionError:  # who floods is cut off for a minute, unless its host starts again
            status = await self.restart(HOST)
        if not _is_whole(status["loaded"]):
            await self._load()
        if not self.expected:
            heard = await self.ask()
            assert heard.done is not None, heard.error
            self.expected, self.used_bytes = heard.ids, self.memory()

    async def _linked(self, within_s: float = END_SECONDS) -> Json:
        """Everybody, as the host sees them: its status then."""
        late = time.monotonic() + within_s
        while True:
            async with self.client() as node_client:
                status = await node_client.get("/status")
            values = status["machines"].values()
            there = {m["name"] for m in values if m["online"] and m["lent_bytes"]}
            if there >= set(NAMES[1:]):
                self.others = [m["id"] for m in values if m["name"] not in NAMES]
                return status
            assert time.monotonic() < late, f"only {sorted(there)} came back"
            await asyncio.sleep(0.1)

    async def _load(self) -> None:
        """Anew; whoever is left out for what it did is used again by a host that has just started."""
        for again in ((), (HOST,), (HOST, LIAR)):
            for name in again:
                await self.restart(name)
            if await self._loads():
                return
        raise AssertionError("the model is not on three machines")

    async def _loads(self) -> bool:
        """Load, and return whether the model is then on three machines."""
        async with self.client() as node_client:
            with suppress(AppError):
                await node_client.post("/unload")
            try:
                async with asyncio.timeout(LOAD_SECONDS):
                    return _is_whole((await node_client.work("POST", "/load", self.load))["loaded"])
            except (AppError, TimeoutError):
                return False

    async def restart(self, name: str) -> Json:
        """Restart as a person would. Return the host's status once everybody is linked again."""
        process = self.nodes[name].process
        process.terminate()
        await asyncio.to_thread(process.wait, END_SECONDS)
        await self._start_again(name)
        return await self._linked()

    async def _start_again(self, name: str) -> None:
        if name == LIAR:
            self._lie.unlink(missing_ok=True)
        await asyncio.to_thread(self.start, name)

    async def ask(self, strike_at: int = -1, strike: Any = None) -> Heard:
        """One answer; `strike` is awaited once so many tokens are there."""
        heard = Heard()
        try:
            async with asyncio.timeout(END_SECONDS), self.client() as node_client:
                async for line in node_client.stream("POST", "/ask", ORDER):
                    _take(heard, line)
                    if strike is not None and len(heard.ids) >= strike_at:
                        work, strike = strike, None
                        await work()
        except AppError as error:
            heard.error = f"{error.reason.code} {error.reason.facts}"
        except TimeoutError:
            heard.error = "no end"
        return heard

    def wrong(self, heard: Heard) -> str:
        """Return what is wrong with an answer."""
        if heard.error:
            return f"an answer ended with {heard.error}"
        return "" if heard.ids == self.expected else "an answer says something else"

    async def named(self, heard: Heard) -> list[str]:
        """Honest machines that were told to be at fault."""
        names = {
            str(notice["machine"])
            for _, notice in heard.notices
            if notice["code"] not in NO_BLAME and notice["machine"] in (HOST, HONEST)
        }
        names |= {name for name in (HOST, HONEST) if f"'{name}'" in heard.error}
        async with self.client() as node_client:
            status = await node_client.get("/status")
        said = {m["name"]: m["reason"] for m in status["machines"].values()}
        return sorted(names | {name for name in (HOST, HONEST) if said.get(name)})

    def memory(self) -> int:
        """Return the memory of the nodes' own processes. Workers hold layers, which come and go."""
        count = 0
        for test_node in self.nodes.values():
            with suppress(psutil.Error):
                count += int(psutil.Process(test_node.process.pid).memory_info().rss)
        return count

    def bugs(self) -> str:
        """Return log entries since the last look that no input may cause."""
        for name, test_node in self.nodes.items():
            file = test_node.root / "stderr.txt"
            words = file.read_bytes()[self.read.get(name, 0) :]
            self.read[name] = self.read.get(name, 0) + len(words)
            if b"Traceback" in words or b"never retrieved" in words:
                at = words.find(b"Traceback")
                return f"{name} logged a bug: {words[at : at + 1500].decode('utf-8', 'replace').splitlines()[-1]}"
        return ""

    # the attacker

    async def begin_attack(self, **words: Any) -> None:
        """Returns once it is under way: the attacker is linked. Raises AssertionError."""
        attacker = self.attacker or await self._begin_attacker()
        assert attacker.stdin is not None
        attacker.stdin.write(json.dumps(words).encode() + b"\n")
        await attacker.stdin.drain()
        assert await self._said("begun"), "the attacker is not let in"

    async def attack_ended(self) -> str:
        """Nothing, or what went wrong with the attacker itself."""
        return str(await self._said("ended"))

    async def _said(self, label: str) -> Any:
        assert self.attacker is not None
        assert self.attacker.stdout is not None
        async with asyncio.timeout(END_SECONDS):
            line = await self.attacker.stdout.readline()
        if not line:
            self.attacker = None
            return "the attacker ended"
        return json.loads(line)[label]

    async def _begin_attacker(self) -> asyncio.subprocess.Process:
        folder = self.folder / f"attacker-{random.randrange(1 << 30)}"
        with (self.folder / "attacker.txt").open("ab") as log:
            made = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.hostile.attacker", str(folder), str(self.nodes[HOST].root),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
            )  # fmt: skip
        self.attacker = made
        assert made.stdout is not None
        async with asyncio.timeout(END_SECONDS):
            line = await made.stdout.readline()
        assert line, (self.folder / "attacker.txt").read_text("utf-8", "replace")[-3000:]
        return made

    async def end(self) -> None:
        if self.attacker is not None and self.attacker.returncode is None:
            assert self.attacker.stdin is not None
            self.attacker.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(10):
                    await self.attacker.wait()
            if self.attacker.returncode is None:
                self.attacker.kill()
        self.attacker = None

    # what is measured meanwhile

    async def returned_s(self) -> float:
        """Return the seconds that an honest member needs to come back now."""
        async with opened(self.folder / "porch") as nodes:
            back = await self._porch(nodes)
            began = time.monotonic()
            async with back.network:
                with suppress(AssertionError):
                    await until(lambda: MachineId(self.nodes[HOST].ready["id"]) in back.network.links, BACK_SECONDS)
                return time.monotonic() - began

    async def _porch(self, nodes: Nodes) -> Node:
        """An honest member that comes and goes."""
        made = await nodes.prepare("porch", port=self.ports.setdefault("porch", free_port()))
        made.__class__ = LendsNothing
        return made

    async def paired_s(self, address: str, code: str) -> float:
        """Return the seconds that a newcomer with the code needs, from its first attempt on."""
        began = time.monotonic()
        async with opened(self.folder / f"newcomer-{random.randrange(1 << 30)}") as nodes:
            new = await nodes.open("newcomer")
            try:
                await new.network.join(Address.parse(address), code)
            except AppError:
                return BACK_SECONDS
        return time.monotonic() - began


def free_port() -> int:
    """One that no outgoing connection takes while its node is away."""
    while True:
        port = random.randrange(*PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def _is_whole(loaded: Json | None) -> bool:
    """Return whether the model is on all three of them."""
    if not loaded or loaded.get("state") != "ready":
        return False
    return {str(stage["machine"]) for stage in loaded["stages"]} == set(NAMES)


@asynccontextmanager
async def laboratory(folder: Path) -> AsyncIterator[Lab]:
    """Run the laboratory until the end of the block."""
    os.environ["POOLHOUSE_KEYSTORE"] = "file"
    with ExitStack() as stack:
        lab = Lab(folder, stack)
        try:
            await lab.begin()
            yield lab
        finally:
            await lab.end()


async def run(lab: Lab | None, kind: Kind, seed: int, folder: Path, restarts: Sequence[str] = ()) -> Outcome:
    """One seeded run, after which these nodes must start again, whatever it left on their disks.

    Only admins need no laboratory: each of theirs has a household of its own.
    """
    try:
        if lab is None:
            return await admin.run(folder, kind[1], seed)
        outcome = await _run(lab, kind, seed)
        for restart in restarts:
            await lab.restart(restart)
    except AssertionError as error:
        outcome = _outcome(kind, seed, f"does not start again: {error}"[:300], not_started=1.0)
    except Exception as error:  # noqa: BLE001  whatever it is, that is the finding
        outcome = _outcome(kind, seed, f"the run broke: {error!r}"[:300])
    if lab is not None and outcome.why:
        await lab.end()  # the next one has attackers of its own
    return outcome


async def _run(lab: Lab, kind: Kind, seed: int) -> Outcome:
    try:
        await lab.whole()
    except AssertionError as error:
        return _outcome(kind, seed, f"not there before it: {error}", not_started=1.0)
    lab.bugs()
    outcome = await (_lied_to if kind[0] == "lender" else _attacked)(lab, kind, seed)
    ended = [name for name, test_node in lab.nodes.items() if test_node.process.poll() is not None]
    grown = lab.memory() - lab.used_bytes
    why = outcome.why or lab.bugs() or (f"{ended} ended" if ended else "")
    if not why and not ended and grown > GROWTH_BAR_BYTES:
        why = f"memory grew by {grown >> 20} MiB"
    if ended:
        try:
            await lab.whole()
        except AssertionError as error:
            outcome.facts["not_started"], why = 1.0, f"does not start again: {error}"[:300]
    outcome.facts["grown_bytes"] = float(max(0, grown))
    return replace(outcome, passed=not why, why=why, in_time=outcome.in_time and not why)


async def _lied_to(lab: Lab, kind: Kind, seed: int) -> Outcome:
    _, lie, _ = kind
    chance = random.Random(f"{lie} {seed}")
    if lie in lender.LOADING:
        return await _loaded(lab, kind, seed)
    if lie == lender.BLAMES_MODEL:
        return await _blamed(lab, kind, seed)
    heard = await lab.ask(chance.randrange(2, 12), lambda: lab.tell(lie, seed))
    is_told = lab.lie_is_told
    await lab.tell("", 0)
    named = await lab.named(heard)
    why = lab.wrong(heard) or ("" if is_told else "the lie was never told")
    lost = float(bool(lab.wrong(heard)))
    if named and not why:
        texts = [notice["text"] for _, notice in heard.notices if notice["machine"] in named]
        why = f"{', '.join(named)} named: {' '.join(texts)[:200]}"
    return _outcome(kind, seed, why, lost=lost, named=float(len(named)))


async def _loaded(lab: Lab, kind: Kind, seed: int) -> Outcome:
    """A load that it spoils ends, and nobody else is named for it."""
    await lab.tell(kind[1], seed)
    why, named = "", 0.0
    async with lab.client() as node_client:
        await node_client.post("/unload")
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await node_client.work("POST", "/load", lab.load)
        except AppError as error:
            honest = [name for name in (HOST, HONEST) if name in error.reason.facts.values()]
            named, why = float(len(honest)), f"{honest} named: {error.reason}" if honest else ""
        except TimeoutError:
            pass  # whoever asked hung up, as a person would
        why = why or ("" if lab.lie_is_told else "the lie was never told")
        await lab.tell("", 0)
    return _outcome(kind, seed, why, named=named)


async def _blamed(lab: Lab, kind: Kind, seed: int) -> Outcome:
    """A load that cannot be without it names it beside the model; one that can goes on without it."""
    order: Json = {"model": LOAD["model"], "shape": "split", "without": lab.others}
    await lab.tell(kind[1], seed)
    why, used = "", set[str]()
    async with lab.client() as node_client, asyncio.timeout(2 * LOAD_SECONDS):
        await node_client.post("/unload")
        try:
            await node_client.work("POST", "/load", lab.load)
            why = "it was loaded"
        except AppError as error:
            blames_file = error.reason.code in ("model_ends_process", "model_not_finite")
            if blames_file or error.reason.facts.get("machine") != LIAR:
                why = f"{LIAR} is not named: {error.reason}"
        why = why or ("" if lab.lie_is_told else "the lie was never told")
        try:
            loaded = (await node_client.work("POST", "/load", order))["loaded"]
            used = {str(stage["machine"]) for stage in loaded["stages"]}
        except AppError as error:
            why = why or f"it was not loaded without {LIAR}: {error.reason}"
        await lab.tell("", 0)
    if not why and used != {HOST, HONEST}:
        why = f"it is on {', '.join(sorted(used))}"
    return _outcome(kind, seed, why, named=float("is not named" in why))


async def _attacked(lab: Lab, kind: Kind, seed: int) -> Outcome:
    """Answers go on meanwhile, and a member comes back."""
    role, name, _ = kind
    chance = random.Random(f"{name} {seed}")
    victim = HONEST if role == "host" and chance.random() < 0.7 else HOST
    window: Json = {}
    if lab.attacker is None:
        await lab._begin_attacker()
    if name == strangers.PAIRING:
        async with lab.client() as node_client:
            window = await node_client.post("/pairing", {"role": "guest"})
    port = int(window["address"].rpartition(":")[2]) if window else lab.nodes[HOST].ready["peer_port"]
    order = {
        "role": role, "name": name, "seed": seed, "victim": lab.nodes[victim].ready["id"], "port": port,
        "seconds": ATTACK_SECONDS,
    }  # fmt: skip
    try:
        await lab.begin_attack(**order)
    except (AssertionError, TimeoutError) as error:
        return _outcome(kind, seed, f"the attacker: {error}")
    named: set[str] = set()
    lost, n_answers = "", 0
    async with asyncio.TaskGroup() as tasks:
        attack = tasks.create_task(lab.attack_ended(), name="attack")
        await asyncio.sleep(0.3)
        work = lab.paired_s(window["address"], window["code"]) if window else lab.returned_s()
        back = tasks.create_task(work, name="comes back")
        while True:
            heard = await lab.ask()
            n_answers += 1
            lost = lost or lab.wrong(heard)
            named |= set(await lab.named(heard))
            if attack.done() and back.done():
                break
    back_s = back.result()
    if window:
        async with lab.client() as node_client:
            with suppress(AppError):
                await node_client.delete("/pairing")
    wrong = attack.result()
    why = lost or (f"{', '.join(sorted(named))} named" if named else "") or (f"the attacker: {wrong}" if wrong else "")
    if not why and back_s >= BACK_SECONDS:
        why = "a member did not come back"
    return _outcome(
        kind, seed, why, in_time=back_s <= BACK_BAR_S, lost=float(bool(lost)), named=float(len(named)), back_s=back_s,
        answers=float(n_answers),
    )  # fmt: skip


def _outcome(kind: Kind, seed: int, why: str, *, in_time: bool = True, **facts: float) -> Outcome:
    usual = {"not_started": 0.0, "named": 0.0, "lost": 0.0}
    return Outcome(*kind, not why, why, in_time=in_time and not why, facts=usual | facts, seed=seed)
